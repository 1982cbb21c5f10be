"""What people are shown of queues, claims, devices and pods: the same world and verdicts, as rows.

In flows a World, and of devices and handlers their objects; out flow frozen rows and sentences
without any layout, for `kubectl moorage` and the dashboard alike. Start reading at `queue_rows`,
then `why`.
"""
