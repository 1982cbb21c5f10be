"""One loop for whatever brings the cluster to what was decided: a queue of keys, and workers.

    change ──add──► WorkQueue ──get──► reconcile(key) ──► Done | After(seconds) | Failed(error)
                        └──────────────── again ───────────────────┘

The words are client-go's (`util/workqueue`) and controller-runtime's. Start reading at
`reconcilers`.
"""
