"""The driver of a node: its parts, and its writes to the cluster.

`node_main` builds it from the other rooms and runs it. `node_cluster` decides the inventory and
publishes it, `node_view` has the devices that the node can prepare and their locations,
`node_handlers` writes the state of discovery handlers into the status of Configurations, and
`node_problems` has the sentences about devices that are not offered. Start reading at
`node_main`.
"""
