"""Writes docs/differences.md from the table of known differences: `python -m tests.compat.answers.report`."""

from itertools import groupby
from pathlib import Path

from tests.compat.answers.differences import KNOWN, Known
from tests.compat.answers.later import APIS_OF_LATER

PAGE = Path(__file__).parents[3] / "docs" / "differences.md"

_HEAD = """\
# How Kaspar's answers differ from Apache Kafka's

Written by `python -m tests.compat.answers.report`; do not edit.

Every answer of every API that Kaspar serves is compared, at every version that Apache Kafka 4.3 serves, with Kafka's
own answer to the same bytes, field by field, for ordinary and for wrong requests (`tests/compat/answers`). What is
listed here differs and is meant to. A difference that is not listed fails the tests; so does one that is listed and no
longer there.

## What is not compared

- Ids, ports, folders and times that a broker makes up itself: only that they are used alike.
- The words of error messages and of the settings' documentation: only whether there are any. Kaspar's are its own.
- The order of a list where Kafka's is that of a hash table.

## APIs that are not announced

A client looks at ApiVersions before it uses an API, so it sees what it would see with an older Kafka. One API is
Kaspar's own and is not announced either: CompactTopics (key 10000), which `kaspar compact` uses. Kafka closes the
connection of whoever asks for it.
"""


def render() -> str:
    lines = [_HEAD, "| Reason | APIs |", "|---|---|"]
    for reason, apis in groupby(APIS_OF_LATER, key=lambda api: APIS_OF_LATER[api]):
        lines.append(f"| {reason} | {', '.join(apis)} |")
    lines += ["", "## Answers that differ", "", "| What | Why |", "|---|---|"]
    lines += [f"| {entry.what} | {entry.reason} |" for entry in KNOWN if not _is_of_later(entry)]
    return "\n".join([*lines, ""])


def _is_of_later(entry: Known) -> bool:
    return entry.what.removesuffix(" is not announced.") in APIS_OF_LATER


if __name__ == "__main__":
    PAGE.write_text(render())
