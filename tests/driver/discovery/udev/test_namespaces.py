"""The udev handler beside a real udevd, and on names that are no text (`in_namespaces`)."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from local_cluster import debian
from local_cluster.loop_devices import CONTROL
from tests.driver.discovery.udev.in_namespaces import STORIES


@pytest.mark.parametrize("story", STORIES)
def test_story(story: str) -> None:
    if os.geteuid() != 0 or not CONTROL.exists():
        pytest.skip("namespaces and loop devices are root's")
    debian.ensure_packages({**debian.NETWORK_PACKAGES, **debian.UDEV_PACKAGES})
    unshare = ["unshare", "--net", "--mount", "--propagation", "private"]
    module = [sys.executable, "-W", "error", "-m", "tests.driver.discovery.udev.in_namespaces"]
    outside = os.readlink("/proc/self/ns/net")

    done = subprocess.run(
        [*unshare, *module, story, outside],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )

    assert done.returncode == 0, done.stderr
