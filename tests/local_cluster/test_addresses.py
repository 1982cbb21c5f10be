"""Addresses of local clusters."""

from __future__ import annotations

from ipaddress import IPv4Network
from pathlib import Path

import pytest

from local_cluster.addresses import POOL, Addresses, choose_subnet
from local_cluster.errors import MachineError
from local_cluster.layout import Layout, layout_of
from local_cluster.settings import MAX_NODES


def test_cluster_keeps_its_subnet_when_others_come_and_go() -> None:
    alone = choose_subnet("00000005", ())

    assert choose_subnet("00000005", [IPv4Network("198.18.0.0/27")]) == alone


def test_taken_subnets_are_skipped() -> None:
    first = choose_subnet("00000000", ())

    second = choose_subnet("00000000", [first, IPv4Network("0.0.0.0/32")])

    assert not second.overlaps(first)


def test_search_goes_round_the_end_of_the_pool() -> None:
    last = choose_subnet("00000fff", ())

    assert int(last.broadcast_address) == int(POOL.broadcast_address)
    assert choose_subnet("00000fff", [last]) == choose_subnet("00000000", ())


def test_full_pool_says_so() -> None:
    with pytest.raises(MachineError, match="no free /27"):
        choose_subnet("00000000", [POOL])


def test_all_addresses_of_the_largest_cluster_differ_and_lie_in_its_subnet() -> None:
    addresses = Addresses(IPv4Network("198.18.0.32/27"))

    nodes = [addresses.node(index) for index in range(MAX_NODES)]
    used = [addresses.host, addresses.control_plane, *nodes]

    assert len(set(used)) == len(used)
    assert all(address in addresses.subnet for address in used)


def test_pods_of_two_nodes_do_not_overlap() -> None:
    addresses = Addresses(IPv4Network("198.18.0.0/27"))

    assert not addresses.pods(0).overlaps(addresses.pods(1))


def test_names_on_the_machine_fit_the_kernel_and_differ_between_folders() -> None:
    one, other = Layout(Path("/srv/one")), Layout(Path("/srv/other"))

    assert len(one.host_interface) <= 15
    assert one.host_interface != other.host_interface
    assert one.network_namespace != other.network_namespace


def test_two_spellings_of_a_folder_are_one_cluster(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)

    assert layout_of(tmp_path / "link" / "x") == layout_of(tmp_path / "." / "x")
