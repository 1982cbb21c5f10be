"""Prepares claims for the kubelet, and reports their devices to it and to the API server.

    kubelet ──► kubelet_plugin ──► kubelet_claims ──► grants: may it? ──► files

Input: the kubelet's calls, and the allocation of the ResourceClaim. Output: CDI files, each with
the record of its claim; the device status of the claim (`device_status`); Events on pods whose
device changed (`claim_events`). `stale_claims` finds claims that no pod uses any more. Start
reading at `kubelet_claims`, or at `grants` for the decisions.
"""
