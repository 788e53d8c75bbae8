"""Schemas for people: formatted, and compared line by line."""

from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final, Literal

import msgspec

from kaspar.console.problems import Unacceptable

_CONTEXT_LINES: Final = 3
_MOST_LINES: Final = 5_000
"""Comparing more lines is slow."""


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line of a comparison, with its numbers on both sides. The kind `skip` stands for `count` unchanged lines."""

    kind: Literal["same", "removed", "added", "skip"]
    text: str = ""
    old: int | None = None
    new: int | None = None
    count: int = 0


def formatted(text: str, schema_type: str) -> str:
    """JSON with line breaks; the order of its fields and its numbers do not change. Protobuf is not formatted."""
    if schema_type == "PROTOBUF":
        return text
    try:
        return msgspec.json.format(text.encode(), indent=2).decode()
    except msgspec.DecodeError:
        return text


def diff(old: str, new: str) -> list[DiffLine]:
    """The differences of two texts. Raises Unacceptable if they are too long."""
    before, after = old.splitlines(), new.splitlines()
    if max(len(before), len(after)) > _MOST_LINES:
        raise Unacceptable(f"Schemas of more than {_MOST_LINES:,} lines are not compared here.")
    lines: list[DiffLine] = []
    for tag, old_start, old_end, new_start, new_end in SequenceMatcher(
        None, before, after, autojunk=False
    ).get_opcodes():
        if tag == "equal":
            is_first, is_last = old_start == 0, old_end == len(before)
            same = [
                DiffLine("same", before[index], index + 1, new_start + index - old_start + 1)
                for index in range(old_start, old_end)
            ]
            lines += _shortened(same, is_first=is_first, is_last=is_last)
        else:
            lines += [DiffLine("removed", before[index], old=index + 1) for index in range(old_start, old_end)]
            lines += [DiffLine("added", after[index], new=index + 1) for index in range(new_start, new_end)]
    return lines


def _shortened(same: list[DiffLine], *, is_first: bool, is_last: bool) -> list[DiffLine]:
    """Only a few of these unchanged lines next to each change; the others are skipped."""
    before = 0 if is_first else _CONTEXT_LINES
    behind = 0 if is_last else _CONTEXT_LINES
    skipped = len(same) - before - behind
    if skipped <= 1:
        return same
    return [*same[:before], DiffLine("skip", count=skipped), *same[len(same) - behind :]]
