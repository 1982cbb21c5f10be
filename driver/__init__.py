"""The driver: devices of a node, as Instances and ResourceSlices, and prepared for its kubelet.

    discovery, handlers ──devices──► instances ──► publishing ──ResourceSlices──► API server
                                         │              └─ what a claim got ─► preparing ──► kubelet
                                         └──────────► device_plugin ──slots──► kubelet without DRA
    configurations ──what is asked for──► all of them; running puts them together

A device comes in at `discovery` or `handlers`, gets its name in `instances`, is shown in
`publishing` and prepared in `preparing`, and never walks back: rooms import only rooms below them.
Modules named after a domain noun are pure; modules named after an outside party talk to it.
Start reading at `running.node_main`.
"""
