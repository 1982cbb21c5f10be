"""The API server: what is read of it into the world, and what is written to it.

In come watches (`stores`, `kinds`, `feeds`), kept as views (`tables`), with whoever waits for
a change (`waiters`); out go removals of gates and conditions (`apiserver_gates` decides when,
`apiserver_waiting_pods` carries out), the status of Queues (`apiserver_queues`), their finalizers,
and Events of what people should look at (`apiserver_warnings`). All decisions are made in the rooms
below. Start reading at `stores`.
"""
