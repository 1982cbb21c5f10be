"""Stories on Kubernetes 1.33, which serves no resource.k8s.io: the device-plugin path."""
