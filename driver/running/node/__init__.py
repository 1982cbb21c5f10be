"""A node's driver: which parts it has, and what it shows its cluster.

`node_main` builds it of the other rooms and runs it; `node_cluster` is the API server as this node
asks it, `node_sight` which devices it can prepare and where they are, `node_handlers` what the
status of Configurations says of its discovery handlers. Start reading at `node_main`.
"""
