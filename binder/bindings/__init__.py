"""Bindings and owner labels: the writes on claims, and the outcome of a binding.

`claim_writes` builds the writes on a claim and `apiserver_claims` carries them out; `pod_bindings`
builds bindings and reads from the pod how an attempt ended. `binder.apiserver` calls them in order.
"""
