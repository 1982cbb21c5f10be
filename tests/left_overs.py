"""What an object of ours still holds, however it keeps it: tests see that nothing is left."""

from __future__ import annotations

from collections.abc import Iterator, Sized

OURS = frozenset({"driver", "scheduler_plugin", "binder", "webhook", "kube"})


def kept_in(thing: object, *apart: object) -> dict[str, int]:
    """The collections in `thing` and what it is made of, by path, with their entries' number.

    Args:
        thing: An object of a class of ours; so is what is looked through in it.
        apart: Objects that are not looked into.
    """
    seen = {id(one) for one in apart}
    return {path: len(found) for path, found in _collections(thing, "", seen) if len(found)}


def _collections(thing: object, path: str, seen: set[int]) -> Iterator[tuple[str, Sized]]:
    if id(thing) in seen:
        return
    seen.add(id(thing))
    if isinstance(thing, dict | list | set):
        yield path, thing
    elif type(thing).__module__.partition(".")[0] in OURS:
        for name, value in _attributes(thing):
            yield from _collections(value, f"{path}.{name}", seen)


def _attributes(thing: object) -> Iterator[tuple[str, object]]:
    yield from getattr(thing, "__dict__", {}).items()
    for kind in type(thing).__mro__:
        names = getattr(kind, "__slots__", ())
        for name in (names,) if isinstance(names, str) else names:
            if hasattr(thing, name):
                yield name, getattr(thing, name)
