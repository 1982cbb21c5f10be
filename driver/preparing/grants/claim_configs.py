"""The device configs of an allocation: which config applies to which device, and its problems.

    ResourceClaim ──ClaimConfigs──► DeviceConfig of each result | problems

kube-scheduler copies the configs of DeviceClasses and of the claim into the allocation, for all
drivers. All entries for the request of a result apply: first those of its class, then those of the
claim, each in their order; `device_configs.merged` merges them.

An administrator writes a class, and users write a claim. A claim may add to its class, or change
it, but gives its containers no permission that the class does not have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from driver.api import DRIVER_NAME, Problem
from driver.device_configs import DeviceConfig, merged, read
from kube.shapes.claims import ClaimRequest
from kube.shapes.full_claims import Config, FullClaim, FullDevices
from kube.shapes.reading import JsonObject, read_as

_FROM_CLASS = "FromClass"


class ClaimConfigs:
    """The configs of the devices of one allocated claim.

    Attributes:
        problems: All problems, each with its path in the claim or the DeviceClass.
    """

    def __init__(self, found: JsonObject | FullClaim) -> None:
        """`found` is an allocated ResourceClaim."""
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
        """The config of the devices of a result with this request."""
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
    """Whether an entry applies to a request: it names it, its parent request, or none."""
    named = entry.requests or ()
    return not named or request in named or request.partition("/")[0] in named


def _at(place: str, problem: Problem) -> Problem:
    """A problem with its path, as the webhook writes it, see `webhook.rules.device_configs`."""
    path = f"{place}.opaque.parameters.{problem.path}".rstrip(".")
    return Problem(path, problem.message)


def _place(entry: Config, entries: Iterable[Config], claim: FullClaim) -> str:
    """The path of an entry of the allocation in the claim or DeviceClass that it is from."""
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


def _classes(request: ClaimRequest) -> Iterator[tuple[str, str]]:
    name = request.name or ""
    if request.exactly is not None:
        yield name, request.exactly.device_class_name or ""
    for alternative in request.first_available or ():
        yield f"{name}/{alternative.name}", alternative.device_class_name or ""


_NO_DEVICES = FullDevices()
