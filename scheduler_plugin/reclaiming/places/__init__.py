"""Whether a pod would find a node with devices and room once others are gone.

In comes what the API server says of nodes, slices and taints (`evidence`); a device has to satisfy
the request's CEL (`offers`, `expressions`) and be left over by others (`device_use`), the node has
to be one that the pod may use (`node_selection`) with room for it (`node_room`). In doubt it is no
place. Start reading at `places`.
"""
