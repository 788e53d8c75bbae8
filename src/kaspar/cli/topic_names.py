"""Matches the arguments of a command with topics: names, patterns, and similar names for one that does not exist."""

import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Final

from kaspar.cli.failures import NotFound, WrongUsage

_GLOB: Final = re.compile(r"[*?\[]")


def is_pattern(word: str) -> bool:
    """Whether the word is a shell pattern ('orders-*') or a regular expression ('^orders-[0-9]+$'). Topic names cannot
    look like either.
    """
    return word.startswith("^") or _GLOB.search(word) is not None


def expression_of(pattern: str) -> str:
    """The pattern as a regular expression for the whole name, which both Python and librdkafka (POSIX) understand.
    Raises WrongUsage."""
    expression = pattern
    if not pattern.startswith("^"):
        expression = f"^{pattern.replace('.', '[.]').replace('*', '.*').replace('?', '.')}$"
    try:
        re.compile(expression)
    except re.error as problem:
        raise WrongUsage(f"'{pattern}' is not a pattern: {problem}") from None
    return expression


def matching(words: Sequence[str], existing: Iterable[str]) -> list[str]:
    """The names that match the words, in the order of the words. Patterns do not match topics such as
    __consumer_offsets, unless they start with '__' themselves. Raises NotFound."""
    names = sorted(existing)
    found: dict[str, None] = {}
    for word in words:
        if not is_pattern(word):
            found[word] = None
            continue
        expression = re.compile(expression_of(word))
        with_internal = word.lstrip("^").startswith("__")
        matches = [name for name in names if expression.search(name) and (with_internal or not name.startswith("__"))]
        if not matches:
            raise NotFound(f"no topic matches '{word}'; 'kaspar topic list' lists all topics")
        found |= dict.fromkeys(matches)
    return list(found)


def unknown_topic(name: str, existing: Sequence[str]) -> NotFound:
    near = difflib.get_close_matches(name, existing, n=3, cutoff=0.6)
    if near:
        return NotFound(f"there is no topic '{name}': did you mean {_either(near)}?")
    return NotFound(
        f"there is no topic '{name}': 'kaspar topic create {name}' creates it, 'kaspar topic list' lists all topics"
    )


def _either(names: Sequence[str]) -> str:
    quoted = [f"'{name}'" for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"
