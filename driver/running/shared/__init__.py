"""The driver of the cluster: one elected process for what no single node can say.

`shared_main` builds and runs it; `shared_cluster` says who serves which part of what it asks the
API server for; `cluster_configurations` makes one DeviceClass and one status of each Configuration.
Start reading at `shared_cluster`.
"""
