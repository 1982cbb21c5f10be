"""Which objects of a store have a certain term, such as a claim's name or a node's."""

from collections.abc import Callable, Iterable, Mapping
from typing import Generic, TypeAlias, TypeVar

from kube.objects import ObjectKey

T = TypeVar("T")

# The terms under which a value is found. Pure: asked again, it gives the same answer.
TermsOf: TypeAlias = Callable[[T], Iterable[str]]


class Indexes(Generic[T]):
    """Named indexes; each maps a term to the keys of the objects that have it."""

    __slots__ = ("_keys", "_terms_of")

    def __init__(self, terms_of: Mapping[str, TermsOf[T]]) -> None:
        self._terms_of = dict(terms_of)
        # Dicts as ordered sets: smaller than sets, and the same history gives the same order.
        self._keys: dict[str, dict[str, dict[ObjectKey, None]]] = {name: {} for name in terms_of}

    def keys(self, index: str, term: str) -> tuple[ObjectKey, ...]:
        return tuple(self._keys[index].get(term, ()))

    def terms(self, value: T) -> dict[str, frozenset[str]]:
        """Return all terms of a value; raises what a foreign function raises."""
        return {name: frozenset(terms_of(value)) for name, terms_of in self._terms_of.items()}

    def add(self, key: ObjectKey, terms: Mapping[str, frozenset[str]]) -> None:
        for index, found in terms.items():
            for term in found:
                self._keys[index].setdefault(term, {})[key] = None

    def remove(self, key: ObjectKey, terms: Mapping[str, frozenset[str]]) -> None:
        for index, found in terms.items():
            for term in found:
                keys = self._keys[index][term]
                keys.pop(key, None)
                if not keys:
                    del self._keys[index][term]
