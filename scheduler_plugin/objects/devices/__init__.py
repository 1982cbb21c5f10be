"""The devices of the cluster, and the meaning of classes and resource names.

Input is DeviceClasses, Configurations, Instances and slices (`devices`); output is the keys that
queues count for a class or an extended resource (`catalog`), and the maximum number of devices for
a claim (`device_counts`). Start reading at `catalog`.
"""
