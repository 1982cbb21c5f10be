"""Which devices do not satisfy the selectors of a request: a process that evaluates CEL says so."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from kube.api import CelProcess, TooSlowError, digest_of
from scheduler_plugin.api import DeviceId, DeviceRequest, Offer


@dataclass(frozen=True, slots=True)
class Selected:
    """What the selectors of a request say of devices.

    Attributes:
        refused: Those that do not satisfy them; None where that cannot be evaluated.
        too_slow: Digests of the selectors that were not evaluated, since they take too long.
        accepted: Which devices would do, as far as somebody asked.
    """

    refused: Mapping[DeviceId, bool | None]
    too_slow: frozenset[str]
    accepted: dict[DeviceId, bool | None] = field(default_factory=dict)


async def select(
    cel: CelProcess,
    request: DeviceRequest,
    offers: Mapping[DeviceId, Offer],
    told: Collection[str],
) -> Selected:
    """Ask about all devices; `told` are digests of what is known to take too long.

    Raises NotEvaluatedError.
    """
    refused: dict[DeviceId, bool | None] = {}
    too_slow = set[str]()
    for selectors in filter(None, request.selectors):
        left = [device for device in offers if device not in refused]
        expressions = [text for text in selectors if text is not None]
        if len(expressions) < len(selectors):
            refused |= dict.fromkeys(left)
            break
        if (digest := digest_of(expressions)) in told:
            too_slow.add(digest)
            continue
        try:
            found = await cel.matches(expressions, [offers[device].body for device in left])
        except TooSlowError:
            too_slow.add(digest)
            continue
        answers = zip(left, found, strict=True)
        refused |= {device: answer for device, answer in answers if not answer}
    return Selected(refused, frozenset(too_slow))
