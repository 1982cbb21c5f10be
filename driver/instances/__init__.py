"""Instances: which devices there are, under which names, and who says so.

    devices ──► names ──► inventory of a node ──► local, shared ──► Instances on the API server

`names` decides which device has which name, `inventory` what a node has, `rivals` which of it is
one device through two Configurations, `local`, `shared` and `unseen` what is written and removed
by whom, `plans` all that a node writes; `stored` is how an Instance looks on the API server,
`slots` who uses it. The shell is `node_instances`, `cluster_instances`, `handler_discoveries`.
Start reading at `instances`.
"""
