"""The fixtures of stories: what is mended after a test that failed."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from local_cluster import fixtures
from local_cluster.api import Cluster


class FakeCluster:
    """Counts how often it is put right."""

    def __init__(self, work_dir: Path) -> None:
        self.work_dir = work_dir
        self.mended = 0

    def reconfigure(self) -> None:
        self.mended += 1


@pytest.mark.parametrize(("folder", "mended"), [("", 1), ("gone", 0)])
def test_a_cluster_that_was_taken_down_is_not_started_again(
    tmp_path: Path, folder: str, mended: int
) -> None:
    """The last test's teardown is that of the session, too."""
    cluster = FakeCluster(tmp_path / folder)

    fixtures.mend(cast(Cluster, cluster))

    assert cluster.mended == mended
