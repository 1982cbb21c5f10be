"""Stories of two replicas of kube-scheduler and plugin, of which one is killed or stopped."""
