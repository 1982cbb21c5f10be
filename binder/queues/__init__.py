"""What is written about Queues: their status, their finalizer, and Events that warn people.

    World ─changed─► Queues that it touched ─► apiserver_queues ──────► status
    binding, charge ───────────────────────► apiserver_finalizers ──► metadata.finalizers
    World ─changed─► claims, pods ───────────► apiserver_warnings ────► Events

What a status says, which Queues must not go and what is worth an Event is decided in the scheduler
plugin; `status_paces` says how often a status may be written. Start reading at `apiserver_queues`.
"""
