"""Requests of extended resources, and quantities as Kubernetes defines them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from sys import intern

from driver.api import effective_requests
from kube.shapes.pods import Container
from kube.shapes.reading import UnreadableError

IMPLICIT_PREFIX = "deviceclass.resource.kubernetes.io/"
"""The prefix of an extended resource that names its DeviceClass (KEP-5004)."""


_QUANTITY = re.compile(
    r"([+-]?)(\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})([eE][+-]?\d{1,2}|[A-Za-z]{0,2})"
)

_SUFFIXES = {
    "": Fraction(1),
    **{name: Fraction(1000) ** power for power, name in enumerate("kMGTPE", start=1)},
    **{f"{name}i": Fraction(1024) ** power for power, name in enumerate("KMGTPE", start=1)},
    **{name: Fraction(1, 1000**power) for power, name in enumerate("mun", start=1)},
}


def extended_requests(
    init_containers: Sequence[Container], containers: Sequence[Container]
) -> tuple[tuple[str, int], ...]:
    """A pod's effective requests of extended resources."""
    init = [
        (_of(container, f"spec.initContainers[{number}]"), container.restart_policy == "Always")
        for number, container in enumerate(init_containers)
    ]
    others = [_of(each, f"spec.containers[{number}]") for number, each in enumerate(containers)]
    if not any(others) and not any(wanted for wanted, _ in init):
        return ()  # Saves time: most pods request none.
    return tuple(effective_requests(init, others).items())


def _of(container: Container, path: str) -> dict[str, int]:
    """Requests of extended resources; a limit without a request is one, too, as in the API."""
    resources = container.resources
    if resources is None:
        return {}
    asked = {**(resources.limits or {}), **(resources.requests or {})}
    return {
        intern(name): read_quantity(value, f"{path}.resources.requests[{name}]", whole)
        for name, value in asked.items()
        if "/" in name and is_extended(name)
    }


def read_quantity(value: object, path: str, read: Callable[[object], int | None]) -> int:
    """Read a quantity; raises UnreadableError with its path."""
    found = read(value)
    if found is None:
        raise UnreadableError(path, f"{value!r:.80} is not a quantity of at least 0.")
    return found


def is_extended(name: str) -> bool:
    """Whether a resource's name is that of an extended resource."""
    domain, slash, _ = name.partition("/")
    if name.startswith(IMPLICIT_PREFIX):
        return True
    native = domain == "kubernetes.io" or domain.endswith(".kubernetes.io")
    return bool(slash) and not native


def whole(quantity: object) -> int | None:
    """A quantity rounded up to a whole number: 1500m is 2; None if it is invalid or negative."""
    value = _value(quantity)
    return None if value is None else -(-value.numerator // value.denominator)


def thousandths(quantity: object) -> int | None:
    """A quantity in thousandths, rounded up: 1500m is 1500; None if it is invalid or negative."""
    value = _value(quantity)
    return None if value is None else -(-1000 * value.numerator // value.denominator)


def _value(quantity: object) -> Fraction | None:
    if isinstance(quantity, bool) or not isinstance(quantity, int | str):
        return None
    match = _QUANTITY.fullmatch(str(quantity))
    if match is None:
        return None
    sign, digits, suffix = match.groups()
    scale = _scale(suffix)
    if scale is None:
        return None
    value = Fraction(digits if digits[-1] != "." else digits[:-1]) * scale
    return None if sign == "-" and value else value


def _scale(suffix: str) -> Fraction | None:
    if len(suffix) > 1 and suffix[0] in "eE" and not suffix.endswith("i"):
        return Fraction(10) ** int(suffix[1:])
    return _SUFFIXES.get(suffix)
