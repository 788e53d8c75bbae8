"""Patterns of topic names, in RE2's syntax: whether one is good, and what it stands for.

RE2 takes time in proportion to the text, whatever the pattern; still, to compile one or to try it on all topics may
take milliseconds, so both are done in a thread. What `problem_with` has found once, it knows at once the next time: a
shell asks it in a thread before the coordinator asks it where it decides.
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
    """By pattern, the names that match it from beginning to end."""
    version: int
    """Of the topics (`ShardContext.topics_version`)."""

    def only(self, describes: Callable[[str], bool] | None) -> "PatternsResolved":
        """Without the topics that may not be described."""
        if describes is None:
            return self
        topics = {
            pattern: frozenset(name for name in names if describes(name)) for pattern, names in self.topics.items()
        }
        return PatternsResolved(self.group_id, topics, self.version)


@dataclass(frozen=True, slots=True)
class ResolvePatterns:
    """To be run in a thread."""

    group_id: str
    patterns: frozenset[str]
    topics: TopicsView
    version: int
    describes: Callable[[str], bool] | None = None

    def run(self) -> PatternsResolved:
        return PatternsResolved(self.group_id, resolve(self.patterns, self.topics.names()), self.version)


@functools.lru_cache(maxsize=_KNOWN_PATTERNS)
def problem_with(pattern: str) -> str | None:
    """RE2's own sentence, or None if the pattern is good."""
    try:
        re2.compile(pattern, _OPTIONS)
    except re2.error as error:
        (sentence,) = error.args
        return sentence.decode(errors="replace") if isinstance(sentence, bytes) else str(sentence)
    return None


def resolve(patterns: Iterable[str], names: Iterable[str]) -> dict[str, frozenset[str]]:
    """A pattern that RE2 refuses stands for nothing: another broker may have let it in."""
    names = tuple(names)
    resolved = {}
    for pattern in patterns:
        matched: frozenset[str] = frozenset()
        if problem_with(pattern) is None:
            matches = re2.compile(pattern, _OPTIONS).fullmatch
            matched = frozenset(name for name in names if matches(name) is not None)
        resolved[pattern] = matched
    return resolved
