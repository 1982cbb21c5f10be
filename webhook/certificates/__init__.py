"""Which certificate the webhook shows, and whom the API server trusts for it.

    Secret, registrations ──► apiserver ──what was read──► rotation ──what to write──► apiserver
                                  └──────the certificate──────► the listener (kube's LiveTls)

All replicas share one Secret: the authorities that are trusted, the key of the newest, and the
certificate that they serve. `authority` makes and reads those, `rotation` decides when. A
certificate from files, which somebody else renews, needs nothing of this room.
"""
