"""The writes about Queues: status, finalizer, and Events that warn users.

    World ─changed─► Queues that it touched ─► apiserver_queues ──────► status
    binding, charge ───────────────────────► apiserver_finalizers ──► metadata.finalizers
    World ─changed─► claims, pods ───────────► apiserver_warnings ────► Events

The scheduler plugin decides the content of a status, which Queues carry the finalizer, and which
Events there are; `status_rate_limits` limits how often a status is written. Start reading at
`apiserver_queues`.
"""
