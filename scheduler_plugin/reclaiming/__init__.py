"""Who has to give up what for a pod to which it is guaranteed.

In come the world and a pod that waits; out comes which claims are to be freed for it, each with all
its users as one set, or why nobody has to go. `wants` and `device_wants` say what the pod lacks,
room `victims` who could go and in which order, room `places` whether that would help the pod. The
binder asks and evicts. Start reading at `room`, and at `devices` for devices.
"""
