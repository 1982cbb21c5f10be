"""What a container finds of its devices: nodes, environment, links that follow a device that moves.

In comes an Instance whose slot was taken; out go the answer to the kubelet (`responses`) and CDI
files and links on the node's disk (`instance_cdi`, `disk_cdi`, `disk_links`), kept right while the
device is given; `given_events` decides which pods are told of a change. Start reading at
`responses`.
"""
