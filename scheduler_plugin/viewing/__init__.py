"""Rows about queues, claims, devices and pods for people, from the same world and verdicts.

The input is a World, and the objects of devices and handlers. The output is frozen rows and
sentences without layout, for `kubectl moorage` and the dashboard. Start reading at `queue_rows`,
then `why`.
"""
