"""PodSpecs of brokers: which node, and which device, in place of Akri's `{{PLACEHOLDER}}`.

    resources: {limits: {"{{PLACEHOLDER}}": "2"}}
        device plugin ──► resources: {limits: {"akri.sh/<instance>": "2"}}
        DRA ────────────► resources: {claims: [{name: broker-device}]}, a claim with two slots

A container without the placeholder gets no device, as with Akri. Claims that a PodSpec has itself
stay; Akri drops them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import Any

from driver.api import Problem
from driver.pod_requests import effective_requests
from kube.shapes.quantities import whole
from kube.shapes.reading import JsonObject

PLACEHOLDER = "{{PLACEHOLDER}}"
CLAIM = "broker-device"
"""The name of the device's claim in `spec.resourceClaims` of a pod."""

_AMOUNTS = ("limits", "requests")
_LISTS = ("initContainers", "containers")


def slots_problems(spec: JsonObject) -> Iterator[Problem]:
    """Placeholders that are no number of slots; paths begin at the PodSpec."""
    for listed, name in product(_LISTS, _AMOUNTS):
        for index, container in enumerate(spec.get(listed) or ()):
            amounts = _amounts(container, name)
            if PLACEHOLDER in amounts and not whole(amounts[PLACEHOLDER]):
                path = f"{listed}[{index}].resources.{name}"
                yield Problem(path, f"{PLACEHOLDER} is a number of slots from 1 on.")


def slots(spec: JsonObject) -> int:
    """How many slots of the device a pod needs; 0 for a pod without the device."""
    first = (
        ({PLACEHOLDER: _slots(each)}, each.get("restartPolicy") == "Always")
        for each in spec.get("initContainers") or ()
    )
    others = ({PLACEHOLDER: _slots(each)} for each in spec.get("containers") or ())
    return effective_requests(first, others).get(PLACEHOLDER, 0)


def _slots(container: JsonObject) -> int:
    amounts = (_amounts(container, name).get(PLACEHOLDER) for name in _AMOUNTS)
    return max((whole(each) or 0 for each in amounts), default=0)


def _amounts(container: JsonObject, name: str) -> JsonObject:
    found: JsonObject = (container.get("resources") or {}).get(name) or {}
    return found


def with_resource(spec: JsonObject, resource: str) -> JsonObject:
    """The PodSpec with this extended resource in place of the placeholder."""
    return _with_containers(spec, lambda container: _renamed(container, resource))


def with_claim(spec: JsonObject, template: str) -> JsonObject:
    """The PodSpec with a claim of this ResourceClaimTemplate in place of the placeholder."""
    if not slots(spec):
        return spec
    entry = {"name": CLAIM, "resourceClaimTemplateName": template}
    claims = [*(spec.get("resourceClaims") or ()), entry]
    return {**_with_containers(spec, _claiming), "resourceClaims": claims}


def _with_containers(
    spec: JsonObject, changed: Callable[[JsonObject], JsonObject]
) -> dict[str, Any]:
    lists = {name: [changed(each) for each in spec[name]] for name in _LISTS if spec.get(name)}
    return {**spec, **lists}


def _renamed(container: JsonObject, resource: str) -> JsonObject:
    if not _slots(container):
        return container
    changed = {
        name: {(resource if key == PLACEHOLDER else key): value for key, value in found.items()}
        for name in _AMOUNTS
        if (found := _amounts(container, name))
    }
    return {**container, "resources": {**container["resources"], **changed}}


def _claiming(container: JsonObject) -> JsonObject:
    if not _slots(container):
        return container
    resources = container["resources"]
    claims = [*(resources.get("claims") or ()), {"name": CLAIM}]
    rest = {name: dict(_without_placeholder(_amounts(container, name))) for name in _AMOUNTS}
    kept = {name: value for name, value in resources.items() if name not in _AMOUNTS}
    filled = {name: amounts for name, amounts in rest.items() if amounts}
    return {**container, "resources": {**kept, **filled, "claims": claims}}


def _without_placeholder(amounts: JsonObject) -> Iterator[tuple[str, Any]]:
    return ((key, value) for key, value in amounts.items() if key != PLACEHOLDER)


def on_node(spec: JsonObject, node: str) -> JsonObject:
    """The PodSpec for exactly this node, by its name, as pods of a DaemonSet.

    Terms are alternatives, so each of them gets the node. Akri adds a term instead, and a PodSpec
    with node affinity of its own may run elsewhere.
    """
    affinity = spec.get("affinity") or {}
    of_nodes = affinity.get("nodeAffinity") or {}
    required = of_nodes.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    terms = [*_on_node(required.get("nodeSelectorTerms") or ({},), node)]
    selector = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {**spec, "affinity": {**affinity, "nodeAffinity": {**of_nodes, **selector}}}


def _on_node(terms: Iterable[JsonObject], node: str) -> Iterator[JsonObject]:
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    for term in terms:
        yield {**term, "matchFields": [*(term.get("matchFields") or ()), field]}
