"""A fake group of tasks, for tests that decide themselves what runs when."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any


class FakeTasks:
    """Nothing runs unless a test says so."""

    def create_task(self, work: Coroutine[Any, Any, Any], **_: Any) -> FakeTasks:
        work.close()
        return self

    def cancel(self) -> None:
        pass
