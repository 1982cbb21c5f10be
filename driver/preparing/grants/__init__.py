"""Decides whether a claim may have its devices here, and renews the grant when devices move.

Input: the allocation of the ResourceClaim, the configuration of its devices (`claim_configs`,
`configured`), the claims that have these devices (`conflicts`), and the current locations of
devices (`device_locators`). Output: a plan, which `disk_grants` carries out with
`disk_grant_files`; and a renewal when a device moved, which gives no device to two claims
(`rival_claims`). Start reading at `plans`.
"""
