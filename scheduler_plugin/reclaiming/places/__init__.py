"""Whether a pod would find a node with devices and room once others are gone.

In comes what the API server says of nodes, slices and taints, and which devices the request's CEL
refuses (`evidence`); a device has to do (`offers`) and be left over by others (`device_use`), the
node has to be one that the pod may use (`node_selection`) with room for it (`node_room`). In doubt
it is no place. Start reading at `places`.
"""
