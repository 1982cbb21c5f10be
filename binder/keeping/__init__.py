"""The cleanup of claims and PodGroups: two controllers on `kube.reconciling`.

In come changes; out go writes behind the fence, one step at a time, as `scheduler_plugin.keeping`
decides. `periods` says how often. Start reading at `apiserver_keeper`.
"""
