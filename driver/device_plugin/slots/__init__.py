"""Who has which slot: decided from the Instance, the pods and what the kubelet says it gave.

`allocation` decides what an Allocate takes, `reconciliation` what is taken or given back later;
`lists` and `allocatable` decide what the kubelet and the Node are shown, `preferences` what
it is advised. `apiserver_slots` and `apiserver_node_status` write it. Start reading at
`allocation`.
"""
