"""The API server: what the plugin reads from it into the world.

Watches bring the objects (`stores`, `kinds`, `feeds`), which are entered as views (`tables`).
Tasks wait for changes (`waiters`). A claim that a pod names and no watch has brought is read by
itself (`apiserver_lookups`). Start reading at `stores`.
"""
