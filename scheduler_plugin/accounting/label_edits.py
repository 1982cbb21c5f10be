"""Labels of claims that were edited although policies forbid it: what people are told about them.

There are two kinds. A *mismatch* is to be seen in the API's objects: the label differs from the
queue of the pod that it was written for (`owners`). That queue is charged. A label that a user had
set at creation can only be *seen to change*, by a process that was there; what it says now counts.
"""

from __future__ import annotations

from dataclasses import dataclass

from scheduler_plugin.objects.claims import ClaimView
from scheduler_plugin.objects.names import QueueName


@dataclass(frozen=True, slots=True)
class LabelEdit:
    """A claim with an edited label.

    Attributes:
        owner: The queue that is charged; "" for nobody.
        formerly: What the label said before, "" for nothing; None where nobody saw it change.
    """

    claim: ClaimView
    owner: QueueName
    formerly: QueueName | None = None

    def __str__(self) -> str:
        """A sentence for people."""
        charged = f'queue "{self.owner}" is charged' if self.owner else "no queue is charged"
        if self.formerly is None:
            return (
                f"{self.claim} {_says(self.claim.label)}, and {charged}, whose pod the label was"
                " written for."
            )
        return (
            f"{self.claim} {_says(self.claim.label)} since somebody edited it while it was"
            f" allocated; before it {_said(self.formerly)}. Now {charged}."
        )


def seen_edit(before: ClaimView, after: ClaimView) -> bool:
    """Whether a label was edited that must not be.

    The binder writes and removes the label and `owner-pod` together.
    """
    return (
        before.is_allocated
        and after.is_allocated
        and before.label != after.label
        and before.owner_pod == after.owner_pod
    )


def _says(label: QueueName) -> str:
    return f'is labelled "{label}"' if label else "has lost its label"


def _said(label: QueueName) -> str:
    return f'was labelled "{label}"' if label else "had no label"
