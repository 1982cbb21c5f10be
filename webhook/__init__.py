"""The admission webhook: validates and mutates objects by rules that need other objects.

    kube-apiserver ──AdmissionReview──► http_app ──► apiserver ──► rules: allow, deny, or patch
                                                        └──► cluster (stores, and reads)

`rules/` decides what is admitted. `certificates/` manages the serving certificate and the CA that
the API server trusts.

The webhook has no state of its own. Until its stores are filled, and whenever an object that a rule
needs cannot be read, it answers with 503: the registered `failurePolicy` then decides. Rules that
need no other object are admission policies (`deploy/policies`).
"""
