"""The control loop of all controllers: a work queue of keys, and workers that reconcile them.

    change ──add──► WorkQueue ──get──► reconcile(key) ──► Done | After(seconds) | Failed(error)
                        └──────────────── again ───────────────────┘

The words are client-go's (`util/workqueue`) and controller-runtime's. Start reading at
`reconcilers`.
"""
