"""Instances: the discovered devices, their names, and the nodes that see them.

    devices ──► names ──► inventory of a node ──► local, shared ──► Instances on the API server

`names` decides the name of each device, and `inventory` which devices a node has. `rivals` finds
devices that two Configurations offer. `local` and `shared` decide what a node writes, `plans` puts
that together, and `unseen` decides what the shared driver removes. `stored` is the form of an
Instance on the API server, and `slots` its users. The shell is `node_instances`,
`cluster_instances`, `handler_discoveries`. Start reading at `instances`.
"""
