"""Builders of claims and what is prepared for them, and fakes of the kubelet plugin's ports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from driver.api import ClaimUid, ConfigurationName, DeviceName, InstanceName
from driver.devices import DeviceSpec
from driver.instances.instances import Instance
from driver.preparing.files import cdi
from driver.preparing.files.prepared import ClaimReference, Home, PreparedClaim, PreparedClaims
from driver.preparing.grants.claims import (
    AllocatedClaim,
    Failure,
    Instances,
    allocated_claim,
    plan_prepare,
)
from tests.driver.builders import NODE

BOOT = "boot-1"
HOME = Home("uid-of-the-node", "uid-of-the-cluster")


def a_reference(number: int = 1, *, name: str = "") -> ClaimReference:
    """The reference of a claim that is told apart by its number."""
    uid = ClaimUid(f"{number:08x}-0000-4000-8000-000000000000")
    return ClaimReference("default", name or f"claim-{number}", uid)


def a_result(device: str = "loop-aaaaaa", request: str = "req", **fields: Any) -> dict[str, Any]:
    """A result of an allocation."""
    result = {"request": request, "driver": "moorage.dev", "pool": NODE, "device": device}
    return {**result, **fields}


def a_claim(reference: ClaimReference, *results: Mapping[str, Any]) -> dict[str, Any]:
    """An allocated ResourceClaim as the API server returns it."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "namespace": reference.namespace,
            "name": reference.name,
            "uid": reference.uid,
        },
        "spec": {"devices": {"requests": [{"name": "req"}]}},
        "status": {"allocation": {"devices": {"results": list(results or [a_result()])}}},
    }


def a_config(
    fields: Mapping[str, Any],
    *,
    source: str = "FromClaim",
    requests: Sequence[str] = (),
    driver: str = "moorage.dev",
) -> dict[str, Any]:
    """An entry of `config` in an allocation."""
    parameters = {"apiVersion": "moorage.dev/v1alpha1", "kind": "DeviceConfig", **fields}
    opaque = {"driver": driver, "parameters": parameters}
    return {"source": source, "requests": list(requests), "opaque": opaque}


def with_configs(
    claim: dict[str, Any], *entries: dict[str, Any], written: Sequence[dict[str, Any]] = ()
) -> dict[str, Any]:
    """A claim whose allocation has these entries; `written` are those of its spec."""
    claim["status"]["allocation"]["devices"]["config"] = list(entries)
    claim["spec"]["devices"]["config"] = [{"opaque": e["opaque"]} for e in written or entries]
    return claim


def an_instance(name: str = "loop-aaaaaa", **overrides: Any) -> Instance:
    """An Instance of a block device; any field may be given."""
    configuration, _, digest = name.rpartition("-")
    fields: dict[str, Any] = {
        "name": InstanceName(name),
        "hash": digest,
        "configuration": ConfigurationName(configuration),
        "namespace": "default",
        "properties": {"UDEV_DEVNODE": f"/dev/{name}"},
        "mounts": (),
        "device_specs": (DeviceSpec(f"/dev/{name}", f"/dev/{name}", "rw"),),
        "capacity": 1,
        "unique_devices": True,
    }
    return Instance(**{**fields, **overrides})


def some_instances(*instances: Instance) -> Instances:
    """Instances by the device that each is published as."""
    return {(NODE, DeviceName(i.name)): i for i in instances or [an_instance()]}


def allocated(reference: ClaimReference, *results: Mapping[str, Any]) -> AllocatedClaim:
    """A claim's allocation, which must be ours."""
    claim = allocated_claim(a_claim(reference, *results), reference, {NODE})
    assert isinstance(claim, AllocatedClaim), claim
    return claim


def prepared(
    reference: ClaimReference, *results: Mapping[str, Any], instances: Instances | None = None
) -> PreparedClaim:
    """A claim as it is prepared where nothing else is."""
    known = some_instances() if instances is None else instances
    claim = plan_prepare(allocated(reference, *results), known, {}, BOOT)
    assert not isinstance(claim, Failure), claim
    return replace(claim, home=HOME)


def records_in(files: Mapping[str, bytes]) -> PreparedClaims:
    """The claims of a folder's CDI files, as another process would read them."""
    found = {}
    for name, text in files.items():
        if (uid := cdi.claim_of(name)) is not None:
            claim = cdi.load(text, uid)
            assert isinstance(claim, PreparedClaim), claim
            found[uid] = claim
    return found
