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
response to the same bytes, field by field, for valid and invalid requests (`tests/compat/responses`): one broker with
one node, and, for replicas, elections and reassignments, three brokers with three nodes. The differences
listed here are intended. The tests fail on a difference that is not listed, and on a listed one that no longer
exists.

## What is not compared

- Ids, ports, folders and times chosen by a broker: only that they are used in the same way.
- The wording of error messages and of the settings' documentation: only whether they exist.
- The order of a list where Kafka's is that of a hash table.
- A broker that stopped in the last five seconds: Metadata that names topics still lists it, so that librdkafka keeps
  its partitions until it has their new leaders (`broker/lost_brokers.py`). Kafka does not list it.

## APIs that are not announced

A client checks ApiVersions before it uses an API, so it behaves as with an older Kafka. Kaspar's own APIs
(keys from 10000 on) are not announced either: CompactTopics, MoveController and ListTimestamps, which `kaspar compact`,
`kaspar controller` and the monitor use, and those between brokers. Kafka closes the connection of a client that
requests one.
"""

_OF_COMMITS = DIVISIONS[ApiKey.OFFSET_COMMIT][0].at_once
_LARGE_REQUESTS = f"""
## Large requests

The comparison sends small requests. A request with thousands of topics, partitions or groups is handled in pieces,
between which other clients are served (`network/divisions.py`), so a client can observe these differences:

- An OffsetCommit of more than {_OF_COMMITS} partitions is written as several batches of `__consumer_offsets`, of which
  only the first may survive a crash. Kafka writes one batch.
- If the group changes between two pieces, for example by a new member epoch, the partitions of the later ones are
  rejected. An OffsetFetch is then rejected as a whole.
- A duplicate, such as a topic named twice in CreateTopics, is detected only within a piece. In different
  pieces the first is executed, and the second is handled as a separate request: TOPIC_ALREADY_EXISTS.
- CreateTopics may create more than 10,000 partitions in total, which Kafka rejects; a piece may not.
- If a client disconnects, its request may be partly executed.

Beyond these limits the connection is closed. Kafka's only limit is `socket.request.max.bytes`:

| What | Limit |
|---|---|
| partitions of a Produce or a Fetch | {MAX_BATCHES:,} |
| elements of all arrays of a request that is handled in pieces | {MAX_ELEMENTS:,} |
| the same for APIs decided by the controller, and for DescribeConfigs | {CONTROLLED_MAX_ELEMENTS:,} |
| the same for every other API | {UNDIVIDED_MAX_ELEMENTS:,} |
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
