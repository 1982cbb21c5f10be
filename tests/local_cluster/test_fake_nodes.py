"""Fake nodes and the requests that keep them alive."""

from __future__ import annotations

from typing import Any

from local_cluster import fake_kubelets, fake_nodes
from local_cluster.apiserver import ApiServer
from local_cluster.errors import ApiError
from local_cluster.namespaces import name_for
from tests.local_cluster.builders import parts_of


class FakeWrites(ApiServer):
    """Remembers writes; leases are there already."""

    def __init__(self) -> None:
        self.writes: list[str] = []

    def request(self, method: str, path: str, value: Any = None, **_: str) -> None:
        name = "" if method == "PATCH" else value["metadata"]["name"]
        self.writes.append(f"{method} {path.partition('/v1/')[2]} {name}".strip())
        if method == "POST" and path == fake_kubelets.LEASES:
            raise ApiError(409, "AlreadyExists", "")


def test_growing_keeps_the_names_that_were_there() -> None:
    assert fake_nodes.names(3)[:2] == fake_nodes.names(2)


def test_leases_of_an_earlier_time_are_renewed_before_their_nodes_are_there_again() -> None:
    api = FakeWrites()

    fake_kubelets.ensure(api, ("fake-0000",))

    leases = "namespaces/kube-node-lease/leases"
    assert api.writes[:3] == [
        f"POST {leases} fake-0000",
        f"PATCH {leases}/fake-0000",
        "POST nodes fake-0000",
    ]


def test_fake_nodes_are_a_part_only_when_there_are_some() -> None:
    assert "fake-nodes" not in parts_of()
    assert "--count=7" in parts_of(fake_nodes=7)["fake-nodes"].argv


def test_namespace_of_a_test_is_a_dns_label() -> None:
    name = name_for("test_Something[with-Brackets/and:more]" + "x" * 80, "1234-5")

    assert len(name) <= 63
    assert name.startswith("something-with-brackets-and-more")
    assert name == name.lower()
    assert "[" not in name
