"""The path without Dynamic Resource Allocation: slots of Instances through the device-plugin API.

    kubelet ──Allocate──► kubelet room ──► slots: allowed? ──► containers: the answer ──► kubelet

It decides which slot an Allocate takes, and which slots are released. The input is the Instances of
the node and the kubelet's listing of containers. The output is `deviceUsage` on Instances, the
lists of plugins, and files for containers. `node_slots` puts it together.
`node_remaining_slots` is the part that a node needs which offers its devices through DRA.
Start reading at `slots.allocation`.
"""
