"""What people are shown of queues, claims, devices and pods: the same world and verdicts, as rows.

In flows a World, as the plugin has it, or a Snapshot of a cluster, of which a World is made; out
flow frozen rows without any layout. `tables` makes text of them, `kubectl_views` chooses; what is
to be different is laid over a Snapshot by `simulations`. Start reading at `queue_rows`, then `why`.
"""
