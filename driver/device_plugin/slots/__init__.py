"""Decides the holder of each slot, from the Instance, the pods and the kubelet's listing.

`allocation` decides which slots an Allocate takes, and `reconciliation` which slots are taken or
released later. `lists` decides the lists for the kubelet, `allocatable` the allocatable resources
of the Node, and `preferences` the preferred devices. `apiserver_slots` and `apiserver_node_status`
write. Start reading at `allocation`.
"""
