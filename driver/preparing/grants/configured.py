"""Devices with their config applied: what a claim's containers get of an Instance.

Instance, DeviceConfig ──configured──► Instance | why not
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from driver.device_configs import NOTHING_ASKED, DeviceConfig
from driver.device_health import RESERVED
from driver.devices import DeviceSpec, Mount
from driver.instances.instances import Instance
from driver.instances.unusable_properties import container_properties

CERTIFICATES = f"{RESERVED}certificates"
"""Property of a device: the host folder with its certificates. Containers do not get it."""

GUARDS = "/var/run/moorage.dev/guards"
"""The folder in containers where guards are mounted; see `Device.guards`."""

RefuseMount = Callable[[str], str | None]
"""Why a path of the host may not be mounted, such as "mount … is not in …"; None if it may."""


def no_mounts(path: str) -> str | None:
    """Refuses every path; for callers without settings."""
    return f"mount {path} is not allowed"


def configured(
    instance: Instance, config: DeviceConfig, refuse_mount: RefuseMount
) -> Instance | str:
    """The Instance with the config applied, or why that is impossible.

    Users write claims. So a config may reduce what the handler gives, never extend it. Properties
    that may not become environment are removed.
    """
    instance = _without_denied(_guarded(instance))
    if config == NOTHING_ASKED:
        return instance
    if problem := _env_problem(instance, config):
        return problem
    specs = tuple(_spec(spec, config) for spec in instance.device_specs)
    for spec, asked in zip(instance.device_specs, specs, strict=True):
        if not set(asked.permissions) <= set(spec.permissions):
            why = f"its handler gives {spec.host_path} with {spec.permissions}"
            return _cannot_have(f"permissions {asked.permissions}", why)
    return _with_certificates(replace(instance, device_specs=specs), config, refuse_mount)


def _guarded(instance: Instance) -> Instance:
    """Add the guards as mounts: the runtime starts no container whose mount is missing."""
    guards = tuple(Mount(f"{GUARDS}{path}", path, read_only=True) for path in instance.guards)
    return replace(instance, mounts=(*instance.mounts, *guards)) if guards else instance


def _cannot_have(what: str, why: str) -> str:
    return f"cannot have {what} of its DeviceConfig: {why}"


def _without_denied(instance: Instance) -> Instance:
    properties = container_properties(instance)
    if properties is instance.properties:
        return instance
    return replace(instance, properties=properties)


def _env_problem(instance: Instance, config: DeviceConfig) -> str:
    for name, _ in config.env:
        if why := instance.rules.refusal(name):
            return _cannot_have(f"env[{name}]", why)
    taken = sorted(_taken(instance, config))
    return _cannot_have(f"env[{taken[0]}]", "the device has that variable itself") if taken else ""


def _taken(instance: Instance, config: DeviceConfig) -> set[str]:
    plain = instance.properties.keys()
    hashed = {f"{name}_{instance.hash.upper()}" for name in plain}
    return dict(config.env).keys() & {*plain, *hashed}


def _spec(spec: DeviceSpec, config: DeviceConfig) -> DeviceSpec:
    return replace(spec, permissions=config.permissions or spec.permissions)


def _with_certificates(
    instance: Instance, config: DeviceConfig, refuse_mount: RefuseMount
) -> Instance | str:
    if not config.certificates:
        return instance
    if not (folder := instance.properties.get(CERTIFICATES)):
        return _cannot_have("certificates", f"it has no property {CERTIFICATES}")
    if why := refuse_mount(folder):
        return _cannot_have("certificates", why)
    mount = Mount(config.certificates, folder, read_only=True)
    return replace(instance, mounts=(*instance.mounts, mount))
