"""The demo: a device from plug to container, on a real Kubernetes with two nodes."""
