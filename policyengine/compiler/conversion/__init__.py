"""From kube-scheduler's configuration to the policy that means the same, and back.

The `convert` command imports it. It imports `assemble`, `params`, `framework` and `language`.
"""
