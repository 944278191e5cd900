"""What the scheduler counts and measures, under kube-scheduler's names where it has one."""
