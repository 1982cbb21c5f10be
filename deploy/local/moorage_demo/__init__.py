"""The demo: a device from plug to container, and whom it is charged to, on a real Kubernetes."""
