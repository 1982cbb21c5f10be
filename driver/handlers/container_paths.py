"""Places in containers where handlers may put device nodes and mounts.

A handler chooses where in a container a device node or a mount appears. A mount over `/bin/sh`,
`/etc/passwd` or a service account's token would let it run code there, or act as another identity.
So

* every path is absolute and normalized (a slash at the end of a folder is removed before), and is
  not in `/proc` or `/sys`, nor `/` itself;
* device nodes are below `/dev`, and replace no node that every container has, except the node of
  the same path on the host;
* mounts are not at, in or above a folder with programs, libraries, their settings, or secrets.

A setting allows other places, except for the first rule. The links in an image are unknown: a mount
at a link of the image appears where the link leads.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from driver.devices import Device, DeviceSpec, Mount
from driver.discovery.details import shown

FLAG = "--handler-container-paths"

_DEV = "/dev"
_NEVER = ("/proc", "/sys")
_EVERYWHERE = (
    *("null", "zero", "full", "random", "urandom", "tty", "console", "ptmx", "pts", "shm"),
    *("mqueue", "fd", "stdin", "stdout", "stderr", "core", "termination-log"),
)
"""Names below `/dev` that every container has."""

_PROGRAMS = (
    *("/bin", "/sbin", "/usr", "/lib", "/lib32", "/lib64", "/libx32", "/libexec"),
    *("/boot", "/etc", "/root"),
)
_SECRETS = tuple(
    f"{run}/{name}"
    for run in ("/run", "/var/run")
    for name in ("secrets", "kubernetes.io", "moorage.dev")
)
"""Tokens of service accounts, device metadata, and guards of devices."""

_NOT_NORMALIZED = frozenset({"", ".", ".."})


def place_refusal(device: Device, allowed: Iterable[str]) -> str | None:
    """The first path in containers that a device may not have, and why; None if all are allowed.

    Args:
        device: The device as its handler reports it.
        allowed: Paths at or below which the last two rules do not apply. A part may be a pattern.
    """
    allowed = tuple(allowed)
    specs = (
        _refusal(f"device_specs[{n}]", spec.container_path, _spec_refusal(spec), allowed)
        for n, spec in enumerate(device.device_specs)
    )
    mounts = (
        _refusal(f"mounts[{n}]", mount.container_path, _mount_refusal(mount), allowed)
        for n, mount in enumerate(device.mounts)
    )
    return next((why for why in (*specs, *mounts) if why), None)


def _refusal(field: str, path: str, why: str, allowed: Iterable[str]) -> str | None:
    if always := _always_refused(path):
        return f"{field}.container_path {shown(path)} {always}"
    if not why or lies_in(path, allowed):
        return None
    return f"{field}.container_path {shown(path)} {why}; {FLAG} would allow it"


def _always_refused(path: str) -> str:
    if path == "/":
        return "is the root of the container"
    if not _is_normalized(path):
        return "is no absolute path without '.', '..' and empty parts"
    kernels = next((folder for folder in _NEVER if _is_below(path, folder)), None)
    return f"is in {kernels}, which is the kernel's" if kernels else ""


def _spec_refusal(spec: DeviceSpec) -> str:
    path = spec.container_path
    if not _is_below(path, _DEV) or path == _DEV:
        return f"is not below {_DEV}"
    return "" if path == spec.host_path else _takes_every_containers(path)


def _takes_every_containers(path: str) -> str:
    name = path.removeprefix(f"{_DEV}/").partition("/")[0]
    return f"is {_DEV}/{name}, which every container has" if name in _EVERYWHERE else ""


def _mount_refusal(mount: Mount) -> str:
    path = mount.container_path
    if path == _DEV:
        return f"is {_DEV}, which every container has"
    if _is_below(path, _DEV):
        return _takes_every_containers(path)
    for folders, holding in ((_PROGRAMS, "programs and settings"), (_SECRETS, "secrets")):
        for folder in folders:
            if _is_below(path, folder) or _is_below(folder, path):
                return f"covers or is in {folder}, where {holding} of containers are"
    return ""


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


def _is_normalized(path: str) -> bool:
    first, *parts = path.split("/")
    return not first and bool(parts) and _NOT_NORMALIZED.isdisjoint(parts) and "\0" not in path


def lies_in(path: str, allowed: Iterable[str]) -> bool:
    """Whether a normalized path is at or below one of `allowed`, whose parts may be patterns."""
    if not _is_normalized(path):
        return False
    parts = path.split("/")
    return any(_lies_below(parts, pattern.rstrip("/").split("/")) for pattern in allowed)


def _lies_below(parts: list[str], pattern: list[str]) -> bool:
    return len(parts) >= len(pattern) and all(map(fnmatchcase, parts, pattern))
