"""Claims for the kubelet: its calls, and what it and the API server are told.

    kubelet ──► kubelet_plugin ──► kubelet_claims ──► grants: may it? ──► files

In come the kubelet's calls and the allocation on the ResourceClaim; out go CDI files, each with its
claim's record, what a claim's status says of its devices, and Events for pods whose device changed
(`claim_events`). `stale_claims` says which claims no pod has any more. Start reading
at `kubelet_claims`, or at `grants` for what is decided.
"""
