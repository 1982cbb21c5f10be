"""The driver: devices of a node, as Instances and ResourceSlices, and prepared for its kubelet.

    registration_socket ──handlers of other processes──► external_handlers ──devices──┐
    discovery/* ──devices─────────────────────────────────────────────► discoveries ◄─┘
    discoveries ──devices──► instances ──Instance──► apiserver
                                 └──► slices ──ResourceSlice──► apiserver
    dra_kubelet ──claim──► claims ──► cdi, checkpoint ──files──► node

Modules named after a domain noun are pure; modules named after an outside party talk to it.
Start reading at `__main__`.
"""
