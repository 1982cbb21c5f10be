"""Configurations: what users ask to be discovered, and what follows for the cluster at once.

In comes a Configuration; out come a checked one or its problems with their fields
(`configurations`, `user_attributes`), a DeviceClass (`classes`), and the Roles
by which drivers may read what it names (`permissions`). Start reading at `configurations`.
"""
