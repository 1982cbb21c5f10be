"""What the driver leaves in folders of nodes, and the commands of INSTALL.md that remove it."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from driver.api import DRIVER_NAME, ClaimUid, InstanceName
from driver.device_plugin.containers import instance_cdi
from driver.device_plugin.containers.disk_links import Links
from driver.plumbing.disk import temporary_in
from driver.preparing.files import cdi

ROOT = Path(__file__).resolve().parent.parent.parent
CDI = Path("/var/run/cdi")
CLAIM, INSTANCE = ClaimUid("0e9b5ab8-3c11"), InstanceName("camera-a1b2c3")


def blocks() -> list[str]:
    _, _, rest = (ROOT / "INSTALL.md").read_text().partition("\n## Remove every trace\n")
    return re.findall(r"^```sh\n(.+?)^```", rest.partition("\n## ")[0], re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    "path",
    [
        CDI / cdi.file_name(CLAIM),
        CDI / cdi.withheld_name(CLAIM),
        CDI / instance_cdi.file_name(INSTANCE),
        Path(Links(CDI / DRIVER_NAME).folder(INSTANCE)).parent,
        Path(temporary_in(str(CDI))),
    ],
)
def test_all_that_the_driver_writes_for_the_runtime_is_removed(path: Path) -> None:
    _, on_nodes = blocks()
    patterns = re.findall(r"(?<=\s)/\S+", on_nodes)

    assert any(fnmatchcase(str(path), pattern) for pattern in patterns)


def test_other_drivers_cdi_files_are_left_alone() -> None:
    _, on_nodes = blocks()
    patterns = re.findall(r"(?<=\s)/\S+", on_nodes)

    for name in ("nvidia.yaml", "k8s.gpu.example.com-claim-1.json"):
        assert not any(fnmatchcase(str(CDI / name), pattern) for pattern in patterns)


def test_commands_about_claims_are_for_clusters_that_have_claims() -> None:
    in_the_cluster, _ = blocks()
    before, _, guarded = in_the_cluster.partition("\nif kubectl api-resources ")

    assert "resourceclaims --all" not in before
    assert guarded.count("resourceclaims --all-namespaces") == 2
    assert guarded.endswith("\nfi\n")
