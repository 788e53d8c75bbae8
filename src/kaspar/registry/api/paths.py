"""Paths of requests: their segments, and contexts in front of them.

A subject may have any character, so a path is split before it is decoded: `%2F` in a subject is not a separator.
`/contexts/eu/subjects/orders` is another way to write `/subjects/:.eu:orders` (Confluent's ContextFilter).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, unquote

from starlette.datastructures import QueryParams

from kaspar.registry.names import ANY_CONTEXT, DEFAULT_CONTEXT, normalized_context

_CONTEXTS: Final = "contexts"


@dataclass(frozen=True, slots=True)
class Target:
    """What a request is for."""

    segments: tuple[str, ...]
    query: QueryParams


def segments_of(scope: Mapping[str, Any]) -> tuple[str, ...]:
    """Decoded. A slash at the end does not count; one in between makes an empty segment, which no route has."""
    raw: bytes = scope.get("raw_path") or quote(scope["path"]).encode()
    path = raw.split(b"?", 1)[0].decode("latin-1").removeprefix(quote(scope.get("root_path", "")))
    parts = path.removeprefix("/").removesuffix("/").split("/")
    return () if parts == [""] else tuple(unquote(part) for part in parts)


def target_of(segments: Sequence[str], query: QueryParams) -> Target:
    """Raises ValueError for a context that cannot be one."""
    if len(segments) < 2 or segments[0] != _CONTEXTS:
        return Target(tuple(segments), query)
    context, rest = segments[1], segments[2:]
    prefix = "" if context == DEFAULT_CONTEXT else normalized_context(context)
    if not rest:
        return Target((_CONTEXTS, prefix or DEFAULT_CONTEXT), query)
    return Target(tuple(_in_context(rest, prefix)), _query_in_context(rest, prefix, query))


def _in_context(segments: Sequence[str], prefix: str) -> Sequence[str]:
    """The segment after `subjects`, or after `config` or `mode` at the beginning, is the subject."""
    of_settings = segments[0] in ("config", "mode")
    if of_settings and len(segments) == 1:
        return [segments[0], prefix] if prefix else segments
    at = 1 if of_settings else _subject_place(segments)
    if at is None or _has_context(segments[at]):
        return segments
    return [*segments[:at], prefix + segments[at], *segments[at + 1 :]]


def _subject_place(segments: Sequence[str]) -> int | None:
    for place in range(1, len(segments)):
        if segments[place - 1] == "subjects":
            return place
    return None


def _query_in_context(segments: Sequence[str], prefix: str, query: QueryParams) -> QueryParams:
    if tuple(segments[:2]) == ("schemas", "ids"):
        name = "subject"
    elif tuple(segments) in (("schemas",), ("subjects",)):
        name = "subjectPrefix"
    else:
        return query
    value = query.get(name, "")
    if _has_context(value) or (name == "subject" and not prefix):
        return query
    others = [(each, given) for each, given in query.multi_items() if each != name]
    return QueryParams([*others, (name, prefix + value)])


def _has_context(subject: str) -> bool:
    return subject.startswith((":.", ANY_CONTEXT))
