"""The webhook: refuses what no policy can judge, since it takes a look at other objects.

    kube-apiserver ──AdmissionReview──► http_app ──► apiserver ──► rules: yes, no, what a pod lacks
                                                        └──► cluster (stores, and reads)

`rules/` decides what is admitted, `certificates/` which certificate is shown and whom the API
server trusts for it.

It has no state of its own. Until its stores are filled, and whenever it cannot find out what a
rule asks for, it answers with 503: the registered `failurePolicy` then decides.
"""
