"""The driver of the cluster: one elected process for decisions that no single node can make.

`shared_main` builds and runs it; `shared_cluster` connects its parts; `cluster_configurations`
writes the DeviceClass and the status of each Configuration; room
`brokers` runs what they want. Start reading at `shared_cluster`.
"""
