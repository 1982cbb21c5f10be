"""Stories of the Kubernetes before the newest, and of the way to it: `make e2e-previous`."""
