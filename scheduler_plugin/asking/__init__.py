"""What `kubectl moorage` answers: a cluster or a file as a Snapshot, what would be if, and tables.

In flow the cluster's objects (`apiserver_snapshots`), of which a Snapshot keeps what the rules look
at; of it `books` are made, or one of `worlds`, as the plugin has one. What is to be different is
laid over it by `simulations`; `kubectl_views` and `shown_pods` choose the rows of `viewing`, and
`tables` makes text of them, in `columns`. Start reading at `snapshots`.
"""
