"""What the official Kubernetes client lacks: a list-watch store, patches, events, leases.

    api server ──lines──► frames ──objects──► contents ──Added | Modified | Deleted──► consumers
        ▲                                        ▲ note (an own write's answer)
        └──────── ApiClient: create, replace, apply, patch, delete ─────────┘

A room each for `calls`, `stores`, `events`, `leases`, users' `cel` and the life of our `processes`;
`shapes`, by which all read the objects of Kubernetes; and `kubectl`, through which a command reads
that runs for a moment. Modules named `apiserver*` and `http_server` talk to the outside.

It knows nothing of queues or devices. Others import `kube.api`; who has shapes of kinds to declare
imports `kube.models`, too, and pays for pydantic; who serves HTTP, `kube.http_server` and uvicorn.
The modules of `kube.shapes` are doors, too, each for the kind that it reads.
A command that is over in a moment imports `kube.command_settings`, `kube.kinds` and
`kube.kubectl_client` in place of `kube.api`, and pays for no HTTP client.
"""
