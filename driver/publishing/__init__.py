"""ResourceSlices and their pools: the devices that kube-scheduler may allocate.

`desired` decides the desired state: the devices of each pool. `apply` decides the writes that
bring the API server to that state. `apiserver_slices` carries out both for one pool,
`apiserver_pools` says when, and `node_pools` and `cluster_pools` say which pools exist.
`apiserver_allocations` reads which devices claims have. `apiserver_path` and `disk_path_lock` find
out by which contract of the kubelet a node offers its devices.
Start reading at `desired.publication`.
"""
