"""What devices there are to ask for, and what their names stand for.

In come DeviceClasses, Configurations, Instances and slices (`devices`); out come the keys that
queues count for a class or an extended resource (`catalog`), and how many devices a claim can find
on one node (`device_counts`). Start reading at `catalog`.
"""
