"""kube-scheduler's vocabulary: Status, extension points, ClusterEvent, Profile.

May import: `cluster`, `quantity`. Knows no language, no plugin by name, no queue.
"""
