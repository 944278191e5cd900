"""From kube-scheduler's configuration to the policy that means the same, and back."""
