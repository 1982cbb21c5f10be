"""What the official Kubernetes client lacks: a list-watch store, patches, events, leases.

    api server ──lines──► frames ──objects──► contents ──Added | Modified | Deleted──► consumers
        ▲                                        ▲ note (an own write's answer)
        └──────── ApiClient: create, replace, apply, patch, delete ─────────┘

Rooms: `calls` (requests to the API server), `stores` (list-watch), `events`, `leases`,
`reconciling` (work queues and workers), `cel` (expressions of users), `processes` (settings,
logs and the end of a process), `shapes` (typed reads of Kubernetes objects), and `kubectl` (reads
through the user's kubectl, for short commands). Modules named `apiserver*` and `http_server` talk
to the outside.

This component knows nothing of queues or devices. Each room has a door, its `api`, and each module
of `kube.shapes` and in no room is one. So other components load only what they use: `kube.models`
loads pydantic, `kube.http_server` loads uvicorn, and a short command that imports
`kube.kubectl_client` loads no HTTP client.
"""
