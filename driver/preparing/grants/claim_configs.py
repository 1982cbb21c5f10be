"""The device configs of an allocation: which of them are about which device, and what is wrong.

    ResourceClaim ──ClaimConfigs──► DeviceConfig of each result | problems

kube-scheduler copies what DeviceClasses and the claim ask into the allocation, whichever driver it
is for. For a result count all entries that are about its request: first those of its class, then
those of the claim, each in their order; `device_configs.merged` says what comes of them.

A class is made by an administrator and a claim by users: a claim says more than its class, or
something else, but gives its containers no permission that the class keeps from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from driver.api import DRIVER_NAME, Problem
from driver.device_configs import DeviceConfig, merged, read
from kube.shapes.claims import Asked
from kube.shapes.full_claims import Config, FullClaim, FullDevices
from kube.shapes.reading import JsonObject, read_as

_FROM_CLASS = "FromClass"


class ClaimConfigs:
    """What is asked of the devices of one allocated claim.

    Attributes:
        problems: All that is wrong with it, each with its path in the claim, or in the DeviceClass
            that it is from.
    """

    def __init__(self, found: JsonObject | FullClaim) -> None:
        """`found` is a ResourceClaim that is allocated."""
        claim = read_as(FullClaim, found)
        entries = claim.configs
        self.problems: list[Problem] = []
        self._configs: list[tuple[Config, DeviceConfig]] = []
        for entry in sorted(filter(_is_ours, entries), key=_is_of_claim):
            read_config = read(entry.opaque.parameters if entry.opaque is not None else None)
            if isinstance(read_config, DeviceConfig):
                self._configs.append((entry, read_config))
            else:
                place = _place(entry, entries, claim)
                self.problems += (_at(place, problem) for problem in read_config)
        for request in dict.fromkeys(_requests(claim)):
            self.problems += self._excess(request)

    def of(self, request: str) -> DeviceConfig:
        """What is asked of the devices of a result, of which this is the request."""
        return merged(config for entry, config in self._configs if _is_about(entry, request))

    def _excess(self, request: str) -> Iterator[Problem]:
        of_class = [each for each in self._configs if not _is_of_claim(each[0])]
        allowed = merged(config for entry, config in of_class if _is_about(entry, request))
        asked = self.of(request).permissions
        if allowed.permissions and not set(asked) <= set(allowed.permissions):
            sentence = f"The DeviceClass of request {request} allows {allowed.permissions} only."
            yield Problem(f"spec.devices.config: permissions {asked}", sentence)


def _requests(claim: FullClaim) -> Iterator[str]:
    return (result.request or "" for result in claim.results if result.driver == DRIVER_NAME)


def _is_ours(entry: Config) -> bool:
    return entry.opaque is not None and entry.opaque.driver == DRIVER_NAME


def _is_of_claim(entry: Config) -> bool:
    return entry.source != _FROM_CLASS


def _is_about(entry: Config, request: str) -> bool:
    """An entry may name a request, one of a prioritized list (`parent/alternative`), or none."""
    named = entry.requests or ()
    return not named or request in named or request.partition("/")[0] in named


def _at(place: str, problem: Problem) -> Problem:
    """As the webhook says it of the claim or the class, see `webhook.rules.device_configs`."""
    path = f"{place}.opaque.parameters.{problem.path}".rstrip(".")
    return Problem(path, problem.message)


def _place(entry: Config, entries: Iterable[Config], claim: FullClaim) -> str:
    """Where somebody wrote what now stands in the allocation."""
    devices = (claim.spec.devices if claim.spec is not None else None) or _NO_DEVICES
    if not _is_of_claim(entry):
        about = entry.requests
        of_class = [e for e in entries if not _is_of_claim(e) and e.requests == about]
        return f"DeviceClass {_class_of(about, devices)}: spec.config[{_index(entry, of_class)}]"
    return f"spec.devices.config[{_index(entry, devices.config or ())}]"


def _index(entry: Config, entries: Iterable[Config]) -> int:
    return next((i for i, other in enumerate(entries) if other.opaque == entry.opaque), 0)


def _class_of(about: Iterable[str] | None, devices: FullDevices) -> str:
    for name in about or ():
        for request in devices.requests or ():
            for path, class_name in _classes(request):
                if path == name:
                    return class_name
    return "of the claim"


def _classes(request: Asked) -> Iterator[tuple[str, str]]:
    name = request.name or ""
    if request.exactly is not None:
        yield name, request.exactly.device_class_name or ""
    for alternative in request.first_available or ():
        yield f"{name}/{alternative.name}", alternative.device_class_name or ""


_NO_DEVICES = FullDevices()
