"""Bindings and owner labels: what is written on a claim, and what is seen of a pod.

`claim_writes` decides what a write of a claim says and `apiserver_claims` carries it out;
`pod_bindings` says what an attempt to bind came to. `binder.apiserver` puts them in order.
"""
