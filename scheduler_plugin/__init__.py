"""The scheduler plugin: charges every claim once, to the right queue.

    API server ──objects──► cluster ──views──► world ──► facts ──► ledger, assumptions
    kube-scheduler ──Filter, Preempt, Bind──► http_server ──► kube_scheduler
        pod, claims, world ──verdicts.judge──► Admitted ──bind_request──► binder
                                          └──► Refused(reason, sentence)
    ledger ──queue_status──► apiserver_queues ──► status of Queues

Start reading at `verdicts.judge`, or at `serve_main` for how the parts are put together. What
decides about waiting, leaving and orphans (`gates`, `leaving`, `orphans`, `leftovers`) is written
and tested, and nothing calls it yet.
"""
