"""The answers of `kubectl moorage`: snapshots of a cluster or file, simulations, and tables.

`apiserver_snapshots` reads the cluster's objects into a Snapshot, which keeps only what the rules
read. `books` and `worlds` turn it into what the plugin has in memory. `simulations` applies changes
to it. `kubectl_views` and `shown_pods` choose the rows of `viewing`, and `tables` prints them in
`columns`. Start reading at `snapshots`.
"""
