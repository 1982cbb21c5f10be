"""Where paths of the host lead, by the host's device nodes, sysfs and udevd's database."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from driver.instances.disk_nodes import HostNodes


@pytest.fixture
def host(tmp_path: Path) -> HostNodes:
    """A disk with a link, as udevd and the kernel tell of it."""
    link = tmp_path / "links" / r"disk\x2fby-id\x2fusb-Disk_\x5cx2f1"
    link.mkdir(parents=True)
    (link / "b8:16").touch()
    for number, name in (("8:16", "sdb"), ("8:32", "sdc")):
        folder = tmp_path / "sys" / "dev" / "block" / number
        folder.mkdir(parents=True)
        (folder / "uevent").write_text(f"MAJOR=8\nDEVNAME={name}\nDEVTYPE=disk\n")
    return HostNodes(links=tmp_path / "links", sysfs=tmp_path / "sys")


def test_a_link_of_udevd_leads_to_its_node_though_dev_is_not_seen(host: HostNodes) -> None:
    path = r"/dev/disk/by-id/usb-Disk_\x2f1"

    assert set(host.at(path)) == {"b8:16", "/dev/sdb"}


def test_a_link_of_an_older_udevd_leads_to_its_node(tmp_path: Path) -> None:
    older = tmp_path / r"\x2fmine"
    older.mkdir()
    (older / "c188:0").symlink_to("0:/dev/ttyUSB0")

    assert set(HostNodes(tmp_path, tmp_path).at("/dev/mine")) == {"c188:0"}


def test_a_link_that_two_devices_ask_for_may_lead_to_either(
    host: HostNodes, tmp_path: Path
) -> None:
    (tmp_path / "links" / r"disk\x2fby-id\x2fusb-Disk_\x5cx2f1" / "b8:32").touch()

    found = set(host.at(r"/dev/disk/by-id/usb-Disk_\x2f1"))

    assert found == {"b8:16", "/dev/sdb", "b8:32", "/dev/sdc"}


def test_a_number_for_a_name_is_that_number(host: HostNodes) -> None:
    assert set(host.at("/dev/block/8:16")) == {"b8:16", "/dev/sdb"}
    assert set(host.at("/dev/char/188:0")) == {"c188:0"}


def test_a_node_that_is_seen_tells_its_number(tmp_path: Path) -> None:
    node, link = tmp_path / "node", tmp_path / "link"
    os.mknod(node, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    link.symlink_to(node)

    assert set(HostNodes().at(str(link))) == {"c1:3", "/dev/null"}


@pytest.mark.parametrize("path", ["/dev/sdz", "/dev/block/x", "/nowhere", "/dev/\0", ""])
def test_what_leads_nowhere_tells_nothing(host: HostNodes, path: str) -> None:
    assert set(host.at(path)) == set()
