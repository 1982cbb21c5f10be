"""The device configs of an allocation: which of them are about which device, and what is wrong.

    ResourceClaim ──ClaimConfigs──► DeviceConfig of each result | problems

kube-scheduler copies what DeviceClasses and the claim ask into the allocation, whichever driver it
is for. For a result count all entries that are about its request: first those of its class, then
those of the claim, each in their order; `device_configs.merged` says what comes of them.

A class is made by an administrator and a claim by users: a claim says more than its class, or
something else, but gives its containers no permission that the class keeps from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from driver.api import DRIVER_NAME, Problem
from driver.device_configs import DeviceConfig, merged, read

_FROM_CLASS = "FromClass"

Entry = Mapping[str, Any]


class ClaimConfigs:
    """What is asked of the devices of one allocated claim.

    Attributes:
        problems: All that is wrong with it, each with its path in the claim, or in the DeviceClass
            that it is from.
    """

    def __init__(self, claim: Mapping[str, Any]) -> None:
        """`claim` is a ResourceClaim that is allocated."""
        allocated = claim["status"]["allocation"].get("devices", {})
        entries = allocated.get("config") or ()
        self.problems: list[Problem] = []
        self._configs: list[tuple[Entry, DeviceConfig]] = []
        for entry in sorted(filter(_is_ours, entries), key=_is_of_claim):
            found = read(entry["opaque"].get("parameters"))
            if isinstance(found, DeviceConfig):
                self._configs.append((entry, found))
            else:
                place = _place(entry, entries, claim)
                self.problems += (_at(place, problem) for problem in found)
        for request in dict.fromkeys(_requests(allocated)):
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


def _requests(allocated: Mapping[str, Any]) -> Iterator[str]:
    results = allocated.get("results") or ()
    return (result["request"] for result in results if result["driver"] == DRIVER_NAME)


def _is_ours(entry: Entry) -> bool:
    return bool((entry.get("opaque") or {}).get("driver") == DRIVER_NAME)


def _is_of_claim(entry: Entry) -> bool:
    return entry.get("source") != _FROM_CLASS


def _is_about(entry: Entry, request: str) -> bool:
    """An entry may name a request, one of a prioritized list (`parent/alternative`), or none."""
    named = entry.get("requests") or ()
    return not named or request in named or request.partition("/")[0] in named


def _at(place: str, problem: Problem) -> Problem:
    """As the webhook says it of the claim or the class, see `webhook.rules.device_configs`."""
    path = f"{place}.opaque.parameters.{problem.path}".rstrip(".")
    return Problem(path, problem.message)


def _place(entry: Entry, entries: Iterable[Entry], claim: Mapping[str, Any]) -> str:
    """Where somebody wrote what now stands in the allocation."""
    if not _is_of_claim(entry):
        about = entry.get("requests")
        of_class = [e for e in entries if not _is_of_claim(e) and e.get("requests") == about]
        return f"DeviceClass {_class_of(about, claim)}: spec.config[{_index(entry, of_class)}]"
    written = claim.get("spec", {}).get("devices", {}).get("config") or ()
    return f"spec.devices.config[{_index(entry, written)}]"


def _index(entry: Entry, entries: Iterable[Entry]) -> int:
    asked = entry["opaque"]
    return next((i for i, other in enumerate(entries) if other.get("opaque") == asked), 0)


def _class_of(about: Iterable[str] | None, claim: Mapping[str, Any]) -> str:
    for name in about or ():
        for request in claim.get("spec", {}).get("devices", {}).get("requests") or ():
            for path, class_name in _classes(request):
                if path == name:
                    return class_name
    return "of the claim"


def _classes(request: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    name = request.get("name", "")
    if exactly := request.get("exactly"):
        yield name, exactly.get("deviceClassName", "")
    for alternative in request.get("firstAvailable") or ():
        yield f"{name}/{alternative.get('name')}", alternative.get("deviceClassName", "")
