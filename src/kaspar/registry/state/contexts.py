"""The index of one context: its ids, and where each schema is used.

An id belongs to one schema of a context, and a schema of a context has one id, unless an import gave it another one.
"""

from collections.abc import Iterator
from itertools import chain

from kaspar.registry.state.forking import ForkableDict
from kaspar.registry.state.versions import StoredVersion


class ContextIndex:
    __slots__ = ("_by_id", "_ids_by_identity", "max_id")

    def __init__(self) -> None:
        self._by_id: ForkableDict[int, dict[str, tuple[StoredVersion, ...]]] = ForkableDict()
        """By id and subject. A subject has a schema more than once if it was imported, or deleted in between."""
        self._ids_by_identity: dict[bytes, tuple[int, ...]] = {}
        self.max_id = 0
        """The highest id that was ever assigned; ids of deleted schemas are not reused."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ContextIndex) and (self._by_id, self._ids_by_identity, self.max_id) == (
            other._by_id,
            other._ids_by_identity,
            other.max_id,
        )

    __hash__ = None  # type: ignore[assignment]

    def fork(self) -> "ContextIndex":
        fork = ContextIndex()
        fork._by_id = self._by_id.fork()
        fork._ids_by_identity = self._ids_by_identity.copy()
        fork.max_id = self.max_id
        return fork

    def any_with_id(self, schema_id: int) -> StoredVersion | None:
        """One of the versions with this id. It may be deleted: data that was written with it must remain readable."""
        return next(self.with_id(schema_id), None)

    def with_id(self, schema_id: int) -> Iterator[StoredVersion]:
        return chain.from_iterable(self._by_id.get(schema_id, {}).values())

    def with_id_in(self, schema_id: int, subject: str) -> StoredVersion | None:
        """The version of the subject with this id; of several, a live one is preferred, then the highest."""
        found = self._by_id.get(schema_id, {}).get(subject, ())
        return max(found, key=lambda stored: (not stored.deleted, stored.version), default=None)

    def all_with_id_in(self, schema_id: int, subject: str) -> tuple[StoredVersion, ...]:
        return self._by_id.get(schema_id, {}).get(subject, ())

    def ids_of(self, identity: bytes) -> tuple[int, ...]:
        """The ids of the schema, sorted; several only after an import, or if two formats have the same text."""
        return self._ids_by_identity.get(identity, ())

    def put(self, stored: StoredVersion) -> None:
        self._by_id.setdefault(stored.id, {})
        subjects = self._by_id.writable(stored.id)
        same = (*subjects.get(stored.subject, ()), stored)
        subjects[stored.subject] = tuple(sorted(same, key=lambda each: each.version)) if len(same) > 1 else same
        ids = self._ids_by_identity.get(stored.identity, ())
        if stored.id not in ids:
            self._ids_by_identity[stored.identity] = tuple(sorted((*ids, stored.id)))
        self.max_id = max(self.max_id, stored.id)

    def remove(self, stored: StoredVersion) -> None:
        subjects = self._by_id.writable(stored.id)
        rest = tuple(each for each in subjects[stored.subject] if each.version != stored.version)
        if rest:
            subjects[stored.subject] = rest
            return
        del subjects[stored.subject]
        if not subjects:
            del self._by_id[stored.id]
            self._forget_id(stored.identity, stored.id)

    def _forget_id(self, identity: bytes, schema_id: int) -> None:
        ids = tuple(each for each in self._ids_by_identity[identity] if each != schema_id)
        if ids:
            self._ids_by_identity[identity] = ids
        else:
            del self._ids_by_identity[identity]
