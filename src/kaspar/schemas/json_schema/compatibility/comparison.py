"""Compares two graphs of nodes, pair by pair, and collects the differences.

Each pair is compared once: its differences, with paths relative to it, are kept and reused wherever the pair occurs. A
pair that occurs within itself, because the schema is recursive, is assumed to be compatible there. That can hide an
incompatibility of another pair that was compared in the meantime, so the whole comparison is repeated with the pairs
that were found incompatible, until no more are found, as in Confluent's SchemaDiff.

Schemas are untrusted, so the work is bounded: the number of pairs, the depth, and the differences that are kept.
"""

from collections.abc import Callable, Sequence
from typing import Final

from kaspar.schemas.json_schema.compatibility.differences import Difference, Kind
from kaspar.schemas.json_schema.nodes import Link, Schema, dereferenced

MAX_PAIRS: Final = 100_000
MAX_DEPTH: Final = 100
# The limit per pair. More make no difference to the result, and a schema can be written so that they double with every
# level.
MAX_DIFFERENCES: Final = 200

Pair = tuple[Schema, Schema]
Rule = Callable[["Findings", Schema, Schema], None]
"""Adds the differences between two nodes, neither of which is a reference."""


class TooComplex(Exception):
    """The comparison would exceed its bounds."""


class Comparison:
    def __init__(self, rule: Rule, compatible: frozenset[Kind]) -> None:
        self._rule: Final = rule
        self._compatible: Final = compatible
        self._known: dict[Pair, Sequence[Difference]] = {}
        self._in_progress: set[Pair] = set()
        self._incompatible: dict[Pair, Sequence[Difference]] = {}
        """The incompatible pairs of the previous pass."""
        self._assumed: bool = False
        """Whether a pair was assumed to be compatible because it was in progress."""
        self._pairs: int = 0

    def run(self, original: Schema, update: Schema) -> Sequence[Difference]:
        while True:
            self._known.clear()
            self._assumed = False
            differences = self.between(original, update)
            incompatible = {pair: found for pair, found in self._known.items() if not self.accepts(found)}
            if not self._assumed or incompatible.keys() == self._incompatible.keys():
                return differences
            self._incompatible = incompatible

    def accepts(self, differences: Sequence[Difference]) -> bool:
        return all(difference.kind in self._compatible for difference in differences)

    def is_compatible(self, kind: Kind) -> bool:
        return kind in self._compatible

    def between(self, original: Schema, update: Schema) -> Sequence[Difference]:
        pair = (dereferenced(original), dereferenced(update))
        if (known := self._known.get(pair)) is not None:
            return known
        if pair in self._in_progress:
            self._assumed = self._assumed or pair not in self._incompatible
            return self._incompatible.get(pair, ())
        self._pairs += 1
        if self._pairs > MAX_PAIRS or len(self._in_progress) >= MAX_DEPTH:
            raise TooComplex
        self._in_progress.add(pair)
        findings = Findings(self)
        self._rule(findings, *pair)
        self._in_progress.remove(pair)
        self._known[pair] = findings.differences
        return findings.differences


class Findings:
    """Collects the differences of one pair while its rules run. Paths are relative to the pair."""

    def __init__(self, comparison: Comparison) -> None:
        self._comparison: Final = comparison
        self.differences: Final[list[Difference]] = []
        self._compatible = 0

    def add(self, kind: Kind, *path: str) -> None:
        self._keep(Difference(kind, path))

    def include(self, differences: Sequence[Difference], *path: str) -> None:
        """Add the differences of a nested pair."""
        for difference in differences:
            self._keep(Difference(difference.kind, path + difference.path))

    def compare(self, original: Link | None, update: Link | None, *path: str) -> None:
        if original is not None and update is not None:
            self.include(self.between(original.schema, update.schema), *path)
        elif update is not None:
            self.add(Kind.SCHEMA_ADDED, *path)
        elif original is not None:
            self.add(Kind.SCHEMA_REMOVED, *path)

    def between(self, original: Schema, update: Schema) -> Sequence[Difference]:
        """Compare a nested pair, without adding its differences."""
        return self._comparison.between(original, update)

    def accepts(self, differences: Sequence[Difference]) -> bool:
        return self._comparison.accepts(differences)

    def _keep(self, difference: Difference) -> None:
        """Incompatible and compatible differences have separate limits, because only the former decide."""
        compatible = self._comparison.is_compatible(difference.kind)
        kept = self._compatible if compatible else len(self.differences) - self._compatible
        if kept < MAX_DIFFERENCES:
            self._compatible += compatible
            self.differences.append(difference)
