"""Whether a policy keeps other schedulers from the devices of the classes that queues count.

The policy `moorage-allocations` goes by drivers, which a DeviceClass names in plain words or not at
all. Of a driver that it was not told, whatever scheduler comes first gives the devices away, and
nobody is charged before the pod runs, if then.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from scheduler_plugin.objects.devices.devices import ClassView

DRIVERS_NAMED = 5
"""How many drivers a sentence names."""


def unguarded(view: ClassView, held: Iterable[str], guarded: Sequence[str]) -> str:
    """What is not guarded of an accounted class, and what to set; "" where all of it is.

    Args:
        view: The class.
        held: Drivers of which claims have devices through the class, which tell where it does not.
        guarded: The drivers that the policy was told.
    """
    if view.accounted is False or view.configuration:
        return ""
    drivers = view.drivers or tuple(sorted(set(held)))
    lacking = [driver for driver in drivers if driver not in guarded]
    if drivers and not lacking:
        return ""
    what = f"of driver {', '.join(lacking[:DRIVERS_NAMED])}" if lacking else "of a driver not known"
    wanted = ", ".join([*guarded, *lacking[:DRIVERS_NAMED]])
    unless = "" if lacking else f" unless it is {' or '.join(guarded)}"
    value = f"accounting.drivers: [{wanted}]" if lacking else "accounting.drivers to name it, too"
    return (
        f'DeviceClass "{view.name}" is {what}: other schedulers may give its devices away,'
        f" uncharged{unless}. Set {value}."
    )
