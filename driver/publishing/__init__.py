"""ResourceSlices and their pools: what the scheduler may allocate, and how it gets there.

`shown` decides which devices a pool shows and how, `written` by which writes the API server comes
to show it; `apiserver_slices` carries out both for one pool, `apiserver_pools` says when, and
`node_pools` and `cluster_pools` which pools there are.
`apiserver_allocations` tells which devices claims have, `apiserver_path` and `disk_path_lock` by
which contract a node offers its devices. Start reading at `shown.publication`.
"""
