"""Whether a policy keeps other schedulers from allocating devices of accounted classes.

The policy `moorage-allocations` has a list of drivers; a DeviceClass demands its driver in a simple
form or not at all. Devices of a driver that is not on the list may be allocated by any scheduler,
and are charged only once the pod runs, if at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from scheduler_plugin.objects.devices.devices import ClassView

DRIVERS_NAMED = 5
"""The maximum number of drivers that a sentence names."""


def unguarded(view: ClassView, held: Iterable[str], guarded: Sequence[str]) -> str:
    """Which drivers of an accounted class are not guarded, and the value to set; "" for none.

    Args:
        view: The class.
        held: The drivers of devices that are allocated through the class, for a class that demands
            none.
        guarded: The drivers of the policy.
    """
    if view.accounted is False or view.configuration:
        return ""
    drivers = view.drivers or tuple(sorted(set(held)))
    unguarded_drivers = [driver for driver in drivers if driver not in guarded]
    if drivers and not unguarded_drivers:
        return ""
    what = (
        f"of driver {', '.join(unguarded_drivers[:DRIVERS_NAMED])}"
        if unguarded_drivers
        else "of a driver not known"
    )
    wanted = ", ".join([*guarded, *unguarded_drivers[:DRIVERS_NAMED]])
    unless = "" if unguarded_drivers else f" unless it is {' or '.join(guarded)}"
    value = (
        f"accounting.drivers: [{wanted}]"
        if unguarded_drivers
        else "accounting.drivers to name it, too"
    )
    return (
        f'DeviceClass "{view.name}" is {what}: other schedulers may allocate its devices'
        f" uncharged{unless}. Set {value}."
    )


def unguarded_driver(name: str, driver: str, guarded: Sequence[str]) -> str:
    """That no policy guards the driver of an entry, and the value to set; "" if one does.

    Args:
        name: The entry's name.
        driver: The driver.
        guarded: The drivers of the policy.
    """
    if driver in guarded:
        return ""
    return (
        f'Entry "{name}" counts devices of driver {driver}: other schedulers may allocate them'
        f" uncharged. Set accounting.drivers: [{', '.join([*guarded, driver])}]."
    )
