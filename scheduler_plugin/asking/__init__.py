"""What `kubectl moorage` answers: a cluster or a file as a Snapshot, what would be if, and tables.

In flow the cluster's objects (`apiserver_snapshots`), of which a Snapshot keeps what the rules look
at; of it a World is made, as the plugin has one. What is to be different is laid over it by
`simulations`; `kubectl_views` chooses the rows of `viewing`, and `tables` makes text of them, in
`columns`. Start reading at `snapshots`.
"""
