"""The webhook's own CA and serving certificate, and the `caBundle` of its registrations.

    Secret, registrations ──► apiserver ──what was read──► rotation ──what to write──► apiserver
                                  └──────the certificate──────► the listener (kube's LiveTls)

All replicas share one Secret: the trusted CA certificates, the key of the newest, and the serving
certificate. `authority` creates and parses them, `rotation` decides when. A certificate from files,
which another program renews, does not use this room.
"""
