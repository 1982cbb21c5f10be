"""How long the event loop is held up by selectors of tenants, over what holds it up anyway.

Each is asked for 1,000 devices while something else wants its turn again and again, as Filter and
Bind do; the longest time that it had to wait, in milliseconds, beside that of a loop in which
nothing is evaluated for as long.

python -m bench.selectors
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from contextlib import suppress

from kube.cel.api import CelProcess, TooSlowError

HUNDRED = f"[{','.join('1' for _ in range(100))}]"
NESTED = f"{HUNDRED}.map(a, {HUNDRED}.map(b, {HUNDRED}.map(c, true))).size() == 0"
DEVICES = [
    {
        "driver": "moorage.dev",
        "attributes": {"moorage.dev": {f"a{n}": f"value-{n}" for n in range(12)}},
    }
    for _ in range(1_000)
]
SELECTORS = {
    "a plain one": ["device.driver == 'moorage.dev'"],
    "32 plain ones": [f"device.driver != 'driver-{number}'" for number in range(32)],
    "nested map": [NESTED],
    "regular expression": [f"device.driver.matches('{'[a-z]{1,100}' * 800}')"],
    "32 nested maps": [f"{NESTED} || {number} == 1" for number in range(32)],
}


async def longest_wait(work: Awaitable[object]) -> tuple[float, float]:
    """Of something else while this is done, and how long that took; milliseconds."""
    task, longest = asyncio.ensure_future(work), 0.0
    began = last = time.perf_counter()
    while not task.done():
        await asyncio.sleep(0)
        now = time.perf_counter()
        longest, last = max(longest, now - last), now
    return 1000 * longest, 1000 * (last - began)


async def asked(cel: CelProcess, selectors: list[str]) -> None:
    with suppress(TooSlowError):
        await cel.matches(selectors, DEVICES)


async def main() -> None:
    """Print a row for each."""
    cel = CelProcess()
    for name, selectors in SELECTORS.items():
        longest, took = await longest_wait(asked(cel, selectors))
        idle, _ = await longest_wait(asyncio.sleep(took / 1000))
        print(f"{name}: {longest:.1f} ms, {longest / idle:.1f} times an idle loop; took {took:.0f}")
    await cel.close()


if __name__ == "__main__":
    asyncio.run(main())
