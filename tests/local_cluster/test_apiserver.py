"""What the API server is not ready for is asked again, if it is a read."""

from __future__ import annotations

import pytest

from local_cluster import apiserver
from local_cluster.apiserver import ApiServer
from local_cluster.errors import ApiError

BUSY = (429, '{"reason": "TooManyRequests", "message": "storage is (re)initializing"}')
LIST = (200, '{"items": []}')


class FakeAnswers(ApiServer):
    """Gives one answer after the other, the last one for ever; needs no connection."""

    def __init__(self, *answers: tuple[int, str]) -> None:
        self.left = list(answers)
        self.asked = 0

    def _exchange(self, *_: object) -> tuple[int, str]:
        self.asked += 1
        return self.left.pop(0) if len(self.left) > 1 else self.left[0]


def test_a_kind_is_listed_once_the_api_server_has_read_it() -> None:
    api = FakeAnswers(BUSY, BUSY, LIST)

    assert api.get("/apis/akri.sh/v0/instances") == {"items": []}
    assert api.asked == 3


def test_a_read_that_stays_refused_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apiserver, "NOT_READY_SECONDS", 0.05)

    with pytest.raises(ApiError, match="initializing"):
        FakeAnswers(BUSY).get("/apis/akri.sh/v0/instances")


def test_a_refused_eviction_is_not_asked_for_again() -> None:
    api = FakeAnswers(BUSY, LIST)

    with pytest.raises(ApiError):
        api.create("/api/v1/namespaces/a/pods/b/eviction", {})

    assert api.asked == 1
