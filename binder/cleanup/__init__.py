"""The cleanup of claims and PodGroups: two controllers on `kube.reconciling`.

Input is changes; output is fenced writes, one step at a time, as `scheduler_plugin.cleanup`
decides. `periods` has the intervals. Start reading at `apiserver_claim_cleanup`.
"""
