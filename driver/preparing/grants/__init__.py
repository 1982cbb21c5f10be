"""Whether a claim may have its devices here, and what becomes of the grant when they move.

In come the allocation on the ResourceClaim, what it asks of its devices (`claim_configs`,
`configured`), which claims have them (`conflicts`) and where they are now (`device_locators`); out
goes a plan that `disk_grants` carries out, and, when a device is elsewhere, its renewal, which
gives no device to two claims (`rival_claims`). Start reading at `plans`.
"""
