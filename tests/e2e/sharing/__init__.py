"""Stories of claims that are shared: one owner, one charge, on the real kube-scheduler."""
