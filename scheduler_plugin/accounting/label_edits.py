"""Queue labels of claims that were edited although policies forbid it."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler_plugin.objects.claims import ClaimView
from scheduler_plugin.objects.names import QueueName


@dataclass(frozen=True, slots=True)
class LabelEdit:
    """A claim whose label was edited while it was allocated, although policies forbid it.

    The current label counts. Only a process that observed both versions knows of the edit.

    Attributes:
        formerly: The label before the edit; "" for none.
    """

    claim: ClaimView
    formerly: QueueName

    def __str__(self) -> str:
        """The note of the Event."""
        now, before = self.claim.label, self.formerly
        says = f'is labelled "{now}"' if now else "has lost its label"
        said = f'was labelled "{before}"' if before else "had no label"
        charged = f'queue "{now}" is charged' if now else "no queue is charged"
        return (
            f"{self.claim} {says}: a user edited its label while it was allocated. Before, it"
            f" {said}. Now {charged}."
        )


def is_edited(before: ClaimView, after: ClaimView) -> bool:
    """Whether the label was edited: the binder writes and removes it together with `owner-pod`."""
    return (
        before.is_allocated
        and after.is_allocated
        and before.label != after.label
        and before.owner_pod == after.owner_pod
    )
