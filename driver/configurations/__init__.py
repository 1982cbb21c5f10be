"""Configurations: the devices that users want discovered, and what follows for the cluster.

The input is a Configuration. The output is a validated one or its problems with their fields
(`configurations`, `user_attributes`), the conditions of its status (`conditions`), a DeviceClass
(`classes`), and the Roles by which drivers may read the objects that it names (`permissions`).
Start reading at `configurations`.
"""
