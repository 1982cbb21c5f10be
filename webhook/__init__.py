"""The webhook: refuses what no policy can judge, since it takes a look at other objects.

    kube-apiserver ──AdmissionReview──► http_app ──► apiserver ──► mutations: what a pod lacks
                                                        │  └─────► claims, pods, queues: yes, no
                                                        └──► cluster (stores, and reads)

`certificates/` decides which certificate it shows, and whom the API server trusts for it.

It has no state of its own. Until its stores are filled, and whenever it cannot find out what a
rule asks for, it answers with 503: the registered `failurePolicy` then decides.
"""
