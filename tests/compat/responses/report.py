"""Writes docs/differences.md from the table of known differences: `python -m tests.compat.responses.report`."""

from itertools import groupby
from pathlib import Path

from kaspar.broker.produce.handler import MAX_BATCHES
from kaspar.network.divisions import (
    CONTROLLED_MAX_ELEMENTS,
    DIVISIONS,
    MAX_ELEMENTS,
    MAX_RESPONSE_BYTES,
    UNDIVIDED_MAX_ELEMENTS,
)
from kaspar.protocol.api_keys import ApiKey
from tests.compat.responses.differences import KNOWN, Known
from tests.compat.responses.later import APIS_OF_LATER

PAGE = Path(__file__).parents[3] / "docs" / "differences.md"

_HEAD = """\
# How Kaspar's responses differ from Apache Kafka's

Written by `python -m tests.compat.responses.report`; do not edit.

Every response of every API that Kaspar serves is compared, at every version that Apache Kafka 4.3 serves, with Kafka's
response to the same bytes, field by field, for valid and invalid requests (`tests/compat/responses`). The differences
listed here are intended. A difference that is not listed fails the tests; so does one that is listed and no
longer there.

## What is not compared

- Ids, ports, folders and times that a broker chooses itself: only that they are used alike.
- The wording of error messages and of the settings' documentation: only whether there are any. Kaspar's are its own.
- The order of a list where Kafka's is that of a hash table.

## APIs that are not announced

A client looks at ApiVersions before it uses an API, so it sees what it would see with an older Kafka. Kaspar's own APIs
(keys from 10000 on) are not announced either: CompactTopics, MoveController and ListTimestamps, which `kaspar compact`,
`kaspar controller` and the monitor use, and those between brokers. Kafka closes the connection of a client that
requests one.
"""

_OF_COMMITS = DIVISIONS[ApiKey.OFFSET_COMMIT][0].at_once
_LARGE_REQUESTS = f"""
## Large requests

The comparison sends small requests. A request that names thousands of topics, partitions or groups is handled in pieces
between which other clients are served (`network/divisions.py`), so a client can observe these differences:

- An OffsetCommit of more than {_OF_COMMITS} partitions is several batches of `__consumer_offsets`, of which a crash may
  keep only the first ones. Kafka's is one.
- If the group changes between two pieces, for example by a new member epoch, the partitions of the later ones are
  refused. An OffsetFetch is refused as a whole then.
- Something named twice, such as a topic in CreateTopics, is refused as a duplicate within a piece only. In different
  pieces the first is carried out, and the second handled as its own request: TOPIC_ALREADY_EXISTS.
- CreateTopics may create more than 10,000 partitions in all, which Kafka refuses; a piece may not.
- A client that disconnects may leave a request half carried out.

Limits, beyond which the connection is closed. Kafka's only limit is `socket.request.max.bytes`:

| What | At most |
|---|---|
| partitions of a Produce or a Fetch | {MAX_BATCHES:,} |
| elements of all arrays of a request that is handled in pieces | {MAX_ELEMENTS:,} |
| the same where the controller decides, and in DescribeConfigs | {CONTROLLED_MAX_ELEMENTS:,} |
| the same of every other API | {UNDIVIDED_MAX_ELEMENTS:,} |
| the response to a request that is handled in pieces | {MAX_RESPONSE_BYTES // (1024 * 1024)} MiB |
"""


def render() -> str:
    lines = [_HEAD, "| Reason | APIs |", "|---|---|"]
    for reason, apis in groupby(APIS_OF_LATER, key=lambda api: APIS_OF_LATER[api]):
        lines.append(f"| {reason} | {', '.join(apis)} |")
    lines += ["", "## Responses that differ", "", "| What | Why |", "|---|---|"]
    lines += [f"| {entry.what} | {entry.reason} |" for entry in KNOWN if not _is_of_later(entry)]
    return "\n".join([*lines, _LARGE_REQUESTS])


def _is_of_later(entry: Known) -> bool:
    return entry.what.removesuffix(" is not announced.") in APIS_OF_LATER


if __name__ == "__main__":
    PAGE.write_text(render())
