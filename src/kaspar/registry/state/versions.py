"""The versions of one subject."""

from bisect import insort
from collections.abc import Iterator
from dataclasses import dataclass, field

from kaspar.registry.entities import SchemaReference, without_confluent_version
from kaspar.registry.fingerprint import fingerprint, guid_of
from kaspar.registry.records import SchemaValue


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """A version as it is in the log. Its text is parsed only on demand."""

    value: SchemaValue
    identity: bytes
    """The schema's fingerprint."""
    timestamp_ms: int = field(compare=False)
    """The timestamp of its record; 0 before it is written."""

    @property
    def subject(self) -> str:
        return self.value.subject

    @property
    def version(self) -> int:
        return self.value.version

    @property
    def id(self) -> int:
        return self.value.id

    @property
    def deleted(self) -> bool:
        return self.value.deleted

    @property
    def references(self) -> tuple[SchemaReference, ...]:
        return self.value.references or ()

    @property
    def guid(self) -> str:
        return guid_of(self.identity)

    @property
    def has_confluent_version(self) -> bool:
        return self.value.metadata is not None and self.value.metadata.confluent_version is not None

    def identity_without_confluent_version(self) -> bytes:
        value = self.value
        return fingerprint(value.schema, self.references, without_confluent_version(value.metadata), value.rule_set)


class Versions:
    """The versions, sorted by number. Looking up one, the latest, or whether any is live takes constant time."""

    __slots__ = ("_by_number", "_live", "_numbers", "looked_up_otherwise")

    def __init__(self) -> None:
        self._by_number: dict[int, StoredVersion] = {}
        self._numbers: list[int] = []
        self._live = 0
        self.looked_up_otherwise: set[int] = set()
        """Versions that a schema with a different fingerprint may match: those with references, which may be sent
        resolved, and those with `confluent:version`, which may be sent without it."""

    def __len__(self) -> int:
        return len(self._numbers)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Versions) and self._by_number == other._by_number

    __hash__ = None  # type: ignore[assignment]

    def copy(self) -> "Versions":
        copy = Versions()
        copy._by_number = self._by_number.copy()
        copy._numbers = self._numbers.copy()
        copy._live = self._live
        copy.looked_up_otherwise = self.looked_up_otherwise.copy()
        return copy

    @property
    def has_live(self) -> bool:
        return self._live > 0

    @property
    def highest(self) -> int:
        """The highest number; 0 if there are no versions."""
        return self._numbers[-1] if self._numbers else 0

    def get(self, number: int) -> StoredVersion | None:
        return self._by_number.get(number)

    def latest_live(self) -> StoredVersion | None:
        return next(self.newest_first(), None) if self._live else None

    def newest_first(self, *, deleted: bool = False) -> Iterator[StoredVersion]:
        for number in reversed(self._numbers):
            stored = self._by_number[number]
            if deleted or not stored.deleted:
                yield stored

    def oldest_first(self) -> Iterator[StoredVersion]:
        return map(self._by_number.__getitem__, self._numbers)

    def put(self, stored: StoredVersion) -> None:
        number = stored.version
        old = self._by_number.get(number)
        if old is None:
            insort(self._numbers, number)
        else:
            self._live -= not old.deleted
        self._by_number[number] = stored
        self._live += not stored.deleted
        if stored.references or stored.has_confluent_version:
            self.looked_up_otherwise.add(number)
        else:
            self.looked_up_otherwise.discard(number)

    def remove(self, number: int) -> None:
        old = self._by_number.pop(number)
        self._numbers.remove(number)
        self._live -= not old.deleted
        self.looked_up_otherwise.discard(number)
