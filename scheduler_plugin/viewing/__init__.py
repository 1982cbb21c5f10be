"""What people are shown of queues, claims and pods: the same world and verdicts, as rows.

In flows a World, as the plugin has it; out flow frozen rows without any layout. `tables` makes
text of them. Start reading at `queue_rows`.
"""
