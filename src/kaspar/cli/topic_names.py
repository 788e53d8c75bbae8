"""Topics by the words of a command: names and patterns, and near names for one that does not exist."""

import difflib
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import ErrorCode, Refused
from kaspar.cli.failures import NotFound, WrongUsage

if TYPE_CHECKING:
    from kaspar.client.admin.session import Admin
    from kaspar.client.admin.topics import TopicDescription

_GLOB: Final = re.compile(r"[*?\[]")


def is_pattern(word: str) -> bool:
    """'orders-*' is a pattern of a shell, '^orders-[0-9]+$' a regular expression; neither can be a topic's name."""
    return word.startswith("^") or _GLOB.search(word) is not None


def expression_of(pattern: str) -> str:
    """The pattern as a regular expression of the whole name, which Python and librdkafka (POSIX) both know. Raises
    WrongUsage."""
    expression = pattern
    if not pattern.startswith("^"):
        expression = f"^{pattern.replace('.', '[.]').replace('*', '.*').replace('?', '.')}$"
    try:
        re.compile(expression)
    except re.error as problem:
        raise WrongUsage(f"'{pattern}' is not a pattern: {problem}") from None
    return expression


def matching(words: Sequence[str], existing: Iterable[str]) -> list[str]:
    """The names that the words stand for, in the order of the words. Patterns leave out topics such as
    __consumer_offsets, unless they begin with '__' themselves. Raises NotFound."""
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
            raise NotFound(f"no topic matches '{word}'; 'kaspar topic list' shows all")
        found |= dict.fromkeys(matches)
    return list(found)


def unknown_topic(name: str, existing: Sequence[str]) -> NotFound:
    near = difflib.get_close_matches(name, existing, n=3, cutoff=0.6)
    if near:
        return NotFound(f"there is no topic '{name}': did you mean {_either(near)}?")
    return NotFound(f"there is no topic '{name}': 'kaspar topic create {name}' makes it, 'kaspar topic list' shows all")


def _either(names: Sequence[str]) -> str:
    quoted = [f"'{name}'" for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"


def find_topics(admin: "Admin", words: Sequence[str]) -> "dict[str, TopicDescription]":
    """The topics that the words stand for. Creates none. Raises NotFound, or Refused for one that cannot be seen."""
    from kaspar.client.admin.topics import describe_topics, list_topics

    names = matching(words, list_topics(admin)) if any(map(is_pattern, words)) else list(dict.fromkeys(words))
    described = {}
    for name, topic in describe_topics(admin, names).items():
        if isinstance(topic, Refused):
            if topic.code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION):
                raise unknown_topic(name, list_topics(admin))
            raise topic
        described[name] = topic
    return {name: described[name] for name in names}
