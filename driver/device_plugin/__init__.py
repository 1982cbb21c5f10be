"""The path without Dynamic Resource Allocation: slots of Instances through the device-plugin API.

    kubelet ──Allocate──► kubelet ──► slots: may it? ──► containers: what they get ──► kubelet

It decides which slot an Allocate takes, and which are given back. In come the Instances of the node
and what its kubelet says of containers; out go `deviceUsage` on Instances, the lists of plugins,
and files for containers. `node_slots` puts it together; `node_leftovers` is what of it is needed
where devices are offered through DRA. Start reading at `slots.allocation`.
"""
