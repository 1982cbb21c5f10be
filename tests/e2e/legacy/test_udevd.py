"""Devices that udevd tells of, where the device plugin is served."""

from __future__ import annotations

from local_cluster import debian
from tests.e2e.driver.stories import Story
from tests.e2e.driver.test_udevd import play_grouped_config


def test_grouped_config(disks: Story) -> None:
    debian.ensure_packages(debian.UDEV_PACKAGES)
    play_grouped_config(disks)
