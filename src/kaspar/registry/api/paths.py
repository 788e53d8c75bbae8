"""Request paths: their segments, and the context prefix.

A subject may contain any character, so a path is split before it is decoded: `%2F` in a subject is not a separator.
`/contexts/eu/subjects/orders` is another form of `/subjects/:.eu:orders` (Confluent's ContextFilter).
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
    """The decoded path and query of a request, with the context moved into the subject."""

    segments: tuple[str, ...]
    query: QueryParams


def segments_of(scope: Mapping[str, Any]) -> tuple[str, ...]:
    """The decoded segments of the path. A trailing slash is ignored; an empty segment matches no route."""
    raw: bytes = scope.get("raw_path") or quote(scope["path"]).encode()
    path = raw.split(b"?", 1)[0].decode("latin-1").removeprefix(quote(scope.get("root_path", "")))
    parts = path.removeprefix("/").removesuffix("/").split("/")
    return () if parts == [""] else tuple(unquote(part) for part in parts)


def target_of(segments: Sequence[str], query: QueryParams) -> Target:
    """Move a leading context into the subject. Raises ValueError if the name of the context is invalid."""
    if len(segments) < 2 or segments[0] != _CONTEXTS:
        return Target(tuple(segments), query)
    context, rest = segments[1], segments[2:]
    prefix = "" if context == DEFAULT_CONTEXT else normalized_context(context)
    if not rest:
        return Target((_CONTEXTS, prefix or DEFAULT_CONTEXT), query)
    return Target(tuple(_in_context(rest, prefix)), _query_in_context(rest, prefix, query))


def _in_context(segments: Sequence[str], prefix: str) -> Sequence[str]:
    """The subject is the segment after `subjects`, or after a leading `config` or `mode`."""
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
