"""What the official Kubernetes client lacks: a list-watch store, patches, events, leases.

It knows nothing of queues or devices. Others import `kube.api` only.
"""
