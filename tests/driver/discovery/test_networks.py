"""The network handlers among cameras and machines that others wrote (`in_networks`)."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from local_cluster import debian
from local_cluster.go_toolchain import ensure_built
from local_cluster.programs import OPCUA_MACHINES
from tests.driver.discovery.in_networks import STORIES

NAMESPACES = ["unshare", "--net", "--pid", "--fork", "--mount-proc", "--kill-child"]
"""Whatever a story leaves behind ends with it."""


@pytest.mark.parametrize("story", STORIES)
def test_story(story: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("network namespaces are root's")
    debian.ensure_packages(debian.NETWORK_PACKAGES)
    ensure_built(OPCUA_MACHINES)  # where there is a network
    module = [sys.executable, "-W", "error", "-m", "tests.driver.discovery.in_networks"]

    done = subprocess.run(
        [*NAMESPACES, *module, story, os.readlink("/proc/self/ns/net")],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )

    assert done.returncode == 0, done.stderr
