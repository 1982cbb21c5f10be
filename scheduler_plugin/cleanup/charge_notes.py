"""The note on a claim of what its devices cost is kept true while their slices are there."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler_plugin.accounting.charges.charges_to_note import note_to_write
from scheduler_plugin.accounting.world import World
from scheduler_plugin.objects.names import ClaimUid


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargeNote:
    """The note to write on a claim, as an annotation.

    Attributes:
        resource_version: The version of the claim that was judged; the precondition of the write.
        value: The note; None removes the annotation.
    """

    namespace: str
    name: str
    uid: ClaimUid
    resource_version: str
    value: str | None


def changed_note(uid: ClaimUid, world: World) -> ChargeNote | None:
    """The note to write on a claim; None if it has the right one."""
    claim = world.facts.claim(uid)
    if claim is None or not (claim.charge_note or world.facts.tree.definitions):
        return None
    wanted = note_to_write(claim, world.facts)
    if wanted == claim.charge_note:
        return None
    return ChargeNote(
        namespace=claim.namespace,
        name=claim.name,
        uid=uid,
        resource_version=claim.resource_version,
        value=wanted or None,
    )
