"""The contents of a store: objects in, changes out, without clock, sockets and await.

Rules:

* The version of a key never decreases, whether a list, a watch or an own write brings it.
* All changes, applied in order, give the contents. Each change is reported once.
* `position` is the resourceVersion up to which everything is stored. Lists and watches move it.
  An own write does not: earlier versions of *other* objects may not have arrived yet.

Theory. The versions of one resource are numbers that increase with time (KEP-5504). A watch event
or an own write at or below `position` is already stored, even if its object is absent: then the
object was deleted meanwhile. A list is the state of one version; an object that it lacks is
deleted, unless a newer version was stored meanwhile. Items take effect one by one, and objects that
the list lacks are removed at its end, so a list may start over halfway. During a list that replaces
a watch only own writes may be stored besides: the list could restore objects that another stream
saw deleted.

If a projection or index function raises, the store skips this version of the object, reports
`Skipped`, and keeps the value before.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from kube.objects import Identity, MalformedObjectError, ObjectKey, StoredObject, identity_of
from kube.stores.changes import Added, Change, Deleted, Modified, Skipped

T = TypeVar("T")

# The stored value of an object, which comes as JSON or as the watch's shape; None to ignore the
# object.
Projection: TypeAlias = Callable[[Any], T | None]
Facts: TypeAlias = tuple[Change[T] | Skipped, ...]
# The terms under which a value is found, such as the name of a claim or of a node. It must be pure.
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
        """Return all terms of a value; raises whatever an index function raises."""
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


@dataclass(frozen=True, slots=True)
class _Entry(Generic[T]):
    uid: str
    resource_version: int
    value: T


class Contents(Generic[T]):
    """The projected objects of one selection, by key and by index."""

    def __init__(
        self, project: Projection[T], terms_of: Mapping[str, TermsOf[T]] | None = None
    ) -> None:
        self.position = 0
        self._project = project
        self._indexes = Indexes(terms_of or {})
        self._entries: dict[ObjectKey, _Entry[T]] = {}
        # Versions that were projected to None ahead of the watch: older ones must not be stored.
        self._hidden: dict[ObjectKey, int] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[T]:
        return (entry.value for entry in self._entries.values())

    def items(self) -> Iterator[tuple[ObjectKey, T]]:
        return ((key, entry.value) for key, entry in self._entries.items())

    def get(self, key: ObjectKey) -> T | None:
        entry = self._entries.get(key)
        return entry.value if entry else None

    def known(self, obj: StoredObject) -> T | None:
        try:
            identity = identity_of(obj)
            entry = self._entries.get(identity.key)
        except (MalformedObjectError, TypeError):  # The object may come from any client.
            return None
        version = (identity.uid, identity.resource_version)
        return entry.value if entry and (entry.uid, entry.resource_version) == version else None

    def by_index(self, index: str, term: str) -> tuple[T, ...]:
        return tuple(self._entries[key].value for key in self._indexes.keys(index, term))

    def list_item(
        self, obj: StoredObject, seen: set[ObjectKey], *, beside_watch: bool = False
    ) -> Facts[T]:
        """Store one item of a list; `seen` collects the keys of all its pages.

        An item of a list beside a watch may be older than the stored object.
        """
        try:
            identity = identity_of(obj)
        except MalformedObjectError as error:
            return (Skipped(None, error),)
        seen.add(identity.key)
        if beside_watch and identity.resource_version <= self.position:
            return ()
        return self._put(identity, obj)

    def finish_list(self, seen: set[ObjectKey], resource_version: int) -> Facts[T]:
        """Remove objects that the list of this version lacks, and move the position to it."""
        gone = [
            (key, entry)
            for key, entry in self._entries.items()
            if key not in seen and entry.resource_version <= resource_version
        ]
        self._move_to(resource_version)
        return tuple(self._drop(key, entry) for key, entry in gone)

    def rewind(self) -> None:
        """Forget all versions: the server's versions went back, as after a restored backup."""
        self.position = 0
        self._hidden.clear()
        self._entries = {
            key: _Entry(entry.uid, 0, entry.value) for key, entry in self._entries.items()
        }

    def observe(self, obj: StoredObject, *, is_gone: bool = False) -> Facts[T]:
        """Store a version from the watch; for `is_gone` it is the version of the deletion."""
        try:
            identity = identity_of(obj)
        except MalformedObjectError as error:
            return (Skipped(None, error),)
        if identity.resource_version <= self.position:
            return ()
        facts = self._remove(identity) if is_gone else self._put(identity, obj)
        self._move_to(identity.resource_version)
        return facts

    def bookmark(self, resource_version: int) -> None:
        self._move_to(resource_version)

    def note(self, obj: StoredObject) -> Facts[T]:
        """Store the response to an own write, ahead of the watch."""
        identity = identity_of(obj)
        if identity.resource_version <= self.position:
            return ()
        return self._put(identity, obj)

    def _put(self, identity: Identity, obj: StoredObject) -> Facts[T]:
        entry = self._entries.get(identity.key)
        known = max(entry.resource_version if entry else -1, self._hidden.get(identity.key, -1))
        if identity.resource_version <= known:
            return ()
        try:
            value = self._project(obj)
            terms = {} if value is None else self._indexes.terms(value)
        except Exception as error:  # noqa: BLE001  The caller's code; one object must not stop all.
            return (*self._replaced(identity, entry), Skipped(identity.key, error))
        if value is None:
            return self._hide(identity, entry)
        return self._store(identity, entry, value, terms)

    def _remove(self, identity: Identity) -> Facts[T]:
        entry = self._entries.get(identity.key)
        if entry is None or entry.resource_version > identity.resource_version:
            return ()
        return (self._drop(identity.key, entry),)

    def _replaced(self, identity: Identity, entry: _Entry[T] | None) -> Facts[T]:
        """Remove an older object of the same key with another UID."""
        if entry is None or entry.uid == identity.uid:
            return ()
        return (self._drop(identity.key, entry),)

    def _hide(self, identity: Identity, entry: _Entry[T] | None) -> Facts[T]:
        if identity.resource_version > self.position:
            self._hidden[identity.key] = identity.resource_version
        return () if entry is None else (self._drop(identity.key, entry),)

    def _store(
        self,
        identity: Identity,
        entry: _Entry[T] | None,
        value: T,
        terms: Mapping[str, frozenset[str]],
    ) -> Facts[T]:
        key = identity.key
        if entry is None or entry.uid != identity.uid:
            replaced = self._replaced(identity, entry)
            self._insert(identity, value, terms)
            return (*replaced, Added(key, value))
        if entry.value == value:
            # Only the version changed; the old value is kept, so that one object is in memory.
            self._entries[key] = _Entry(entry.uid, identity.resource_version, entry.value)
            return ()
        self._indexes.remove(key, self._indexes.terms(entry.value))
        self._insert(identity, value, terms)
        return (Modified(key, entry.value, value),)

    def _insert(self, identity: Identity, value: T, terms: Mapping[str, frozenset[str]]) -> None:
        self._entries[identity.key] = _Entry(identity.uid, identity.resource_version, value)
        self._indexes.add(identity.key, terms)

    def _drop(self, key: ObjectKey, entry: _Entry[T]) -> Deleted[T]:
        del self._entries[key]
        self._indexes.remove(key, self._indexes.terms(entry.value))
        return Deleted(key, entry.value)

    def _move_to(self, resource_version: int) -> None:
        self.position = max(self.position, resource_version)
        if self._hidden:
            self._hidden = {k: v for k, v in self._hidden.items() if v > self.position}
