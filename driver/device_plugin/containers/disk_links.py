"""The links of Instances on this node's disk, through which containers find their devices."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from driver.api import InstanceName
from driver.plumbing.disk import remove_abandoned, temporary_in


class Links:
    """A folder of links for each Instance: containers find what they were given where it was.

    <root>/<Instance>/device-0 ──► /dev/video2, or nowhere

    A link that leads nowhere says why in its target, which runtimes repeat when they fail to
    follow it. The folder is in memory, as that of CDI files is: after a reboot no link leads to
    what was there.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def folder(self, instance: InstanceName) -> str:
        """Where an Instance's links are, as the host and this process know it."""
        return str(self._root / instance)

    def do_lead(self, instance: InstanceName, targets: Mapping[str, str]) -> bool:
        """Whether an Instance's links lead there already."""
        folder = self._root / instance
        return all(_target(folder / name) == target for name, target in targets.items())

    def lead(self, instance: InstanceName, targets: Mapping[str, str]) -> None:
        """Let an Instance's links lead there; those that it had besides lead nowhere.

        Raises:
            OSError: If one cannot be written.
        """
        others = {
            name: _nowhere(instance, "has no such part now") for name in self._names(instance)
        }
        for name, target in {**others, **targets}.items():
            self._point(self._root / instance / name, target)

    def lead_nowhere(self, instance: InstanceName, why: str) -> None:
        """Let no container be started with these links. Raises OSError."""
        for name in self._names(instance):
            self._point(self._root / instance / name, _nowhere(instance, why))

    def instances(self) -> set[InstanceName]:
        """Those that have links."""
        return {InstanceName(n) for n in _listed(self._root) if not n.startswith(".")}

    def remove(self, instances: Iterable[InstanceName]) -> None:
        """Remove the links of these Instances, and what killed processes left. Raises OSError."""
        for name in instances:
            with suppress(FileNotFoundError):
                shutil.rmtree(self._root / name)
        remove_abandoned(str(self._root))

    def _names(self, instance: InstanceName) -> list[str]:
        return [n for n in _listed(self._root / instance) if not n.startswith(".")]

    def _point(self, link: Path, target: str) -> None:
        if _target(link) == target:
            return
        link.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(temporary_in(str(self._root)))
        temporary.symlink_to(target)
        try:
            if link.is_dir() and not link.is_symlink():
                with suppress(OSError):  # The other process may have been quicker.
                    link.rmdir()  # A runtime makes a folder of a mount that is not there.
            temporary.replace(link)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise


def _listed(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except FileNotFoundError:
        return []


def _target(link: Path) -> str | None:
    with suppress(OSError):
        return os.readlink(link)
    return None


def _nowhere(instance: InstanceName, why: str) -> str:
    return f"/dev/moorage.dev: the device of Instance {instance} {why}"
