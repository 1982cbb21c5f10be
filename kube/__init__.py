"""What the official Kubernetes client lacks: a list-watch store, patches, events, leases.

    api server ──lines──► frames ──objects──► contents ──Added | Modified | Deleted──► consumers
        ▲                                        ▲ note (an own write's answer)
        └──────── ApiClient: create, replace, apply, patch, delete ─────────┘

Modules named `apiserver*` and `official_client` talk to the outside; all others are pure.
It knows nothing of queues or devices. Others import `kube.api` only.
"""
