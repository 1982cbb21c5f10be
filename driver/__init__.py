"""The driver: publishes the devices of a node as Instances and ResourceSlices, and prepares claims.

    discovery, handlers ──devices──► instances ──► publishing ──ResourceSlices──► API server
                                         │              └─── allocations ────► preparing ──► kubelet
                                         └──────────► device_plugin ──slots──► kubelet without DRA
    configurations ──what to discover──► all of them; running puts them together

A device enters at `discovery` or `handlers`, gets its name in `instances`, is published by
`publishing` and prepared by `preparing`. Rooms import only rooms below them.
Modules named after a domain noun are pure; modules named after an outside party talk to it.
Start reading at `running.node.node_main`.
"""
