"""Two minutes of chance, by seeds that stay the same; `make chaos` is longer, with other ones."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from local_cluster.api import Cluster
from local_cluster.fixtures import session_dir
from tests.chaos.clusters import chaos_cluster
from tests.chaos.scene import Scene, scene
from tests.chaos.trial import Trial


@pytest.fixture(scope="module")
def chaos() -> Iterator[Cluster]:
    """Named apart from the session's cluster, which other stories share."""
    with chaos_cluster(session_dir("chaos")) as found:
        yield found


@pytest.fixture(scope="module")
def played(chaos: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with scene(chaos, tmp_path_factory.mktemp("disks")) as found:
        yield found


@pytest.mark.parametrize("seed", [26, 62])
def test_a_minute_of_users_and_faults_breaks_no_rule(
    chaos: Cluster, played: Scene, seed: int
) -> None:
    """What it does is printed, so that a finding is seen with its surroundings."""
    assert chaos is played.cluster
    assert not Trial(played, Random(seed), print).run(minutes=1)
