"""Patterns of topic names in RE2's syntax: how they are checked and matched.

RE2's matching time is proportional to the text, whatever the pattern. Still, compiling a pattern or matching it against
all topics may take milliseconds, so both are done in a thread. `problem_with` caches its results: the shell calls it in
a thread before the coordinator calls it on the event loop.
"""

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

import re2

from kaspar.groups.topics import TopicsView

_OPTIONS: Final = re2.Options()
_OPTIONS.log_errors = False
_KNOWN_PATTERNS: Final = 4096


@dataclass(frozen=True, slots=True)
class PatternsResolved:
    group_id: str
    topics: dict[str, frozenset[str]]
    """For each pattern the names that match it completely."""
    version: int
    """The version of the topics (`ShardContext.topics_version`)."""

    def only(self, describes: Callable[[str], bool] | None) -> "PatternsResolved":
        """A copy with only the topics that may be described."""
        if describes is None:
            return self
        topics = {
            pattern: frozenset(name for name in names if describes(name)) for pattern, names in self.topics.items()
        }
        return PatternsResolved(self.group_id, topics, self.version)


@dataclass(frozen=True, slots=True)
class ResolvePatterns:
    """Resolves patterns. To be run in a thread."""

    group_id: str
    patterns: frozenset[str]
    topics: TopicsView
    version: int
    describes: Callable[[str], bool] | None = None

    def run(self) -> PatternsResolved:
        return PatternsResolved(self.group_id, resolve(self.patterns, self.topics.names()), self.version)


@functools.lru_cache(maxsize=_KNOWN_PATTERNS)
def problem_with(pattern: str) -> str | None:
    """RE2's error message, or None if the pattern is valid."""
    try:
        re2.compile(pattern, _OPTIONS)
    except re2.error as error:
        (sentence,) = error.args
        return sentence.decode(errors="replace") if isinstance(sentence, bytes) else str(sentence)
    return None


def resolve(patterns: Iterable[str], names: Iterable[str]) -> dict[str, frozenset[str]]:
    """The matching names by pattern. A pattern that RE2 refuses matches none: another broker may have accepted it."""
    names = tuple(names)
    resolved = {}
    for pattern in patterns:
        matched: frozenset[str] = frozenset()
        if problem_with(pattern) is None:
            matches = re2.compile(pattern, _OPTIONS).fullmatch
            matched = frozenset(name for name in names if matches(name) is not None)
        resolved[pattern] = matched
    return resolved
