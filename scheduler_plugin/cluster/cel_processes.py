"""Evaluates the selectors that charges depend on, in a process of its own, and enters the results.

    world ──expressions and looks that are open──► CelProcess ──results──► world ──► listeners

Until a result is there a device counts as selected, and a pod that asks for it waits. The process
takes seconds to start on a busy machine, so it is started before any pod comes: as soon as a Queue
counts something for which selectors matter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn

from kube.cel.api import CelProcess, NotEvaluatedError, TooSlowError
from kube.reconciling.api import Done, Failed, Reconciler, Result
from scheduler_plugin.accounting.books import Books
from scheduler_plugin.accounting.world import World
from scheduler_plugin.accounting.world_changes import ClaimChanged, WorldChange
from scheduler_plugin.objects.devices.device_looks import cel_device
from scheduler_plugin.objects.devices.open_looks import SelectedLook
from scheduler_plugin.objects.devices.selections import Expressions
from scheduler_plugin.objects.names import ClaimUid

START: Expressions = ()
"""The key that starts the process: there is nothing to evaluate."""

IN_ONE_CALL = 500
"""The largest number of looks of one call: this process decodes them in 5 ms."""


class LookEvaluator:
    """Evaluates what the world's claims wait for, while `run` runs."""

    def __init__(self, world: World, changed: Callable[[WorldChange], None]) -> None:
        """`changed` is called for each claim whose charges are known better."""
        self._world = world
        self._changed = changed
        self._cel = CelProcess()
        self._queue: Reconciler[Expressions] = Reconciler("entry-selectors", self._evaluate)
        self._is_started = False

    async def run(self) -> NoReturn:
        """Evaluate until cancelled."""
        try:
            await self._queue.run()
        finally:
            await self._cel.close()

    def look(self) -> None:
        """Evaluate soon what is open now; start the process if any may be open later."""
        if not self._is_started and self._world.facts.catalog.definitions:
            self._is_started = True
            self._queue.add(START)
        if self._world.facts.open_looks:
            self._queue.add_all(self._world.facts.open_looks.by_expressions())

    async def _evaluate(self, expressions: Expressions) -> Result:
        try:
            await self._cel.start()
            await self._evaluate_open(expressions)
        except NotEvaluatedError as error:
            return Failed(error)
        return Done()

    async def _evaluate_open(self, expressions: Expressions) -> None:
        while looks := self._world.facts.open_looks.of(expressions):
            for claim in await evaluate(self._world, self._cel, expressions, looks):
                self._changed(ClaimChanged(claim))
            # The next devices of the same claims may have come to be open, by other expressions.
            self.look()


async def evaluate(
    books: Books, cel: CelProcess, expressions: Expressions, looks: Sequence[str]
) -> list[ClaimUid]:
    """Evaluate expressions for looks and enter the results; returns the claims that waited.

    Raises:
        NotEvaluatedError: The process does not run; a retry may succeed.
    """
    answers: dict[str, bool | None] = {}
    for begin in range(0, len(looks), IN_ONE_CALL):
        part = looks[begin : begin + IN_ONE_CALL]
        try:
            found = await cel.matches(expressions, [cel_device(look) for look in part])
        except TooSlowError:
            return books.put_too_slow(expressions)
        answers |= zip(part, found, strict=True)
    return books.put_selected(expressions, answers)


async def evaluate_all(books: Books) -> list[SelectedLook]:
    """Evaluate everything that the charges of books depend on, and return the results.

    Raises:
        NotEvaluatedError: The process does not run.
    """
    cel, found = CelProcess(), list[SelectedLook]()
    try:
        while opened := books.facts.open_looks.by_expressions():
            for expressions, looks in opened.items():
                await evaluate(books, cel, expressions, looks)
                found += books.selected(expressions, looks)
    finally:
        await cel.close()
    return found
