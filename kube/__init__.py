"""What the official Kubernetes client lacks: a list-watch store, patches, events, leases.

    api server ──lines──► frames ──objects──► contents ──Added | Modified | Deleted──► consumers
        ▲                                        ▲ note (an own write's answer)
        └──────── ApiClient: create, replace, apply, patch, delete ─────────┘

Rooms: `calls` (requests to the API server), `stores` (list-watch), `events`, `leases`,
`reconciling` (work queues and workers), `cel` (expressions of users), `processes` (settings,
logs and the end of a process), `shapes` (typed reads of Kubernetes objects), and `kubectl` (reads
through the user's kubectl, for short commands). Modules named `apiserver*` and `http_server` talk
to the outside.

This component knows nothing of queues or devices. Other components import `kube.api`. Components
that declare models import `kube.models` as well, which loads pydantic. Components that serve HTTP
import `kube.http_server`, which loads uvicorn. The modules of `kube.shapes` are doors, too, each
for the kind that it reads. A short command imports `kube.command_settings`, `kube.kinds` and
`kube.kubectl_client` in place of `kube.api`, and so loads no HTTP client.
"""
