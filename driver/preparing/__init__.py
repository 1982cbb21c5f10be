"""Claims for the kubelet: whether a claim may have its devices here, and what its containers get.

    kubelet ──► kubelet_plugin ──► kubelet_claims ──► claims: may it? ──► disk_grants ──► files

In come the kubelet's calls and the allocation on the ResourceClaim; out go the checkpoint, CDI
files, and Events for pods whose device changed (`renewals`, `claim_notices`). `whereabouts` says
where a device is now; `claim_configs` and `configured`, what the claim asks of it.
`kubelet_holders` deals with claims that are in the way and gone. Start reading at `claims`.
"""
