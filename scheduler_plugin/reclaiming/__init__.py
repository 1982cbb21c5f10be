"""Who has to give up what for a pod to which it is guaranteed.

In come the world and a pod that waits; out comes which claims are to be freed for it, each with all
its users as one set, or why nobody has to go. `wants` says what the pod lacks, `victims` who uses
what and who is protected, `effects` what an eviction frees and whose quota it would touch. The
binder asks and evicts. Start reading at `decisions.decide`.
"""
