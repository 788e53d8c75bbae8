"""Reads Prometheus' text format (0.0.4). Only samples are read, because callers know the types of the families.

Malformed lines are skipped: the page comes from another program, and the rest of it is still useful.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

_SAMPLE: Final = re.compile(
    r"(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)[ \t]*(?:\{(?P<labels>.*)\})?[ \t]+(?P<value>\S+)(?:[ \t]+-?\d+)?\s*"
)
_LABEL: Final = re.compile(
    r'[ \t]*(?P<name>[a-zA-Z_][a-zA-Z0-9_]*)[ \t]*=[ \t]*"(?P<value>(?:[^"\\]|\\.)*)"[ \t]*(?:,|$)'
)
_ESCAPED: Final = re.compile(r"\\(.)")
_UNESCAPED: Final = {"n": "\n", "\\": "\\", '"': '"'}
_NO_LABELS: Final[Mapping[str, str]] = {}


@dataclass(frozen=True, slots=True)
class Sample:
    name: str
    labels: Mapping[str, str]
    value: float


def parse(page: str) -> Iterator[Sample]:
    for line in page.split("\n"):  # not splitlines(): labels may contain other line separators
        if line and line[0] != "#" and (sample := _sample(line)) is not None:
            yield sample


def _sample(line: str) -> Sample | None:
    match = _SAMPLE.fullmatch(line.strip())
    if match is None:
        return None
    labels = _labels(match["labels"] or "")
    try:
        value = float(match["value"])  # also accepts NaN, +Inf and -Inf
    except ValueError:
        return None
    return None if labels is None else Sample(match["name"], labels, value)


def _labels(text: str) -> Mapping[str, str] | None:
    text = text.strip()
    if not text:
        return _NO_LABELS
    labels: dict[str, str] = {}
    at = 0
    while at < len(text):
        match = _LABEL.match(text, at)
        if match is None:
            return None
        labels[match["name"]] = _ESCAPED.sub(lambda escape: _UNESCAPED.get(escape[1], escape[0]), match["value"])
        at = match.end()
    return labels
