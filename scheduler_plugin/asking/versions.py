"""The versions of `kubectl moorage`, of the release, and of the cluster."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from typing import Self

from scheduler_plugin.asking.shown import Shown


def client_version() -> str:
    """The version of this package."""
    return version("moorage")


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """The versions; "" for one that is not known.

    Attributes:
        image: The image of the scheduler plugin.
    """

    client: str
    kubernetes: str = ""
    image: str = ""

    @classmethod
    def of_client(cls, *, kubernetes: str = "", image: str = "") -> Self:
        """The versions, with that of this package."""
        return cls(client=client_version(), kubernetes=kubernetes, image=image)

    @property
    def server(self) -> str:
        """The tag of the plugin's image; "" if only its digest is known."""
        name = self.image.partition("@")[0].rpartition("/")[2]
        return name.partition(":")[2]


def shown_versions(found: Versions) -> Shown:
    """The versions as `kubectl version` prints its own."""
    server = f"{found.server or 'unknown'} ({found.image})" if found.image else ""
    lines = {
        "Client Version": found.client,
        "Server Version": server,
        "Kubernetes Version": found.kubernetes,
    }
    plain = {
        "clientVersion": found.client,
        "serverVersion": found.server,
        "serverImage": found.image,
        "kubernetesVersion": found.kubernetes,
    }
    parts = [f"{name}: {said}" for name, said in lines.items() if said]
    return Shown({name: said for name, said in plain.items() if said}, parts)
