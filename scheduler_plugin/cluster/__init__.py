"""The API server: what is read of it into the world.

In come watches (`stores`, `kinds`, `feeds`), kept as views (`tables`), with those that wait for a
change (`waiters`). A claim that a pod names and no watch has brought is read by itself
(`apiserver_lookups`). Start reading at `stores`.
"""
