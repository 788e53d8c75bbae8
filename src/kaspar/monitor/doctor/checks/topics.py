"""Topics that nobody uses, and settings of topics that cost much."""

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Final

from kaspar.monitor.doctor.check import check
from kaspar.monitor.doctor.checks.disks import replica_sizes
from kaspar.monitor.doctor.findings import Fault, Severity
from kaspar.monitor.doctor.looks import Looks, counted, some

SMALL_SEGMENT_BYTES: Final = 10 << 20
SMALL_SEGMENT_MS: Final = 10 * 60_000
ALIKE: Final = 0.85


@check(
    "misspelt-topic",
    Severity.NOTE,
    title="An empty topic has almost the name of another",
    why="With auto.create.topics.enable a client that misspells a topic creates one, and waits there for records.",
    mending="Correct the client, then delete the topic; or turn automatic creation off.",
)
def misspelt_topic(looks: Looks) -> Iterator[Fault]:
    last = looks.last
    if last.broker_setting("auto.create.topics.enable") != "true" or not last.log_dirs:
        return
    sizes: dict[str, int] = {}
    for where, size in replica_sizes(last).items():
        sizes[where.topic] = sizes.get(where.topic, 0) + size
    used = {where.topic for group in last.groups.values() for where in group.committed}
    ordinary = [name for name in sorted(last.topics) if not name.startswith("_")]
    empty = [name for name in ordinary if sizes.get(name) == 0 and name not in used]
    full = [name for name in ordinary if sizes.get(name, 0) > 0]
    for name in empty[:_MOST_COMPARED]:
        close = get_close_matches(name, full, n=1, cutoff=ALIKE) if len(name) > _SHORT else []
        if close and not _is_numbered(name, close[0]):
            detail = f"Nothing was ever written to it, and no group reads it; there is a topic {close[0]}."
            yield Fault(f"topic {name}", detail, looks.access.kaspar("topic", "delete", name))


_SHORT: Final = 3
_MOST_COMPARED: Final = 100


def _is_numbered(name: str, other: str) -> bool:
    """Names that differ in their digits only are a series, not a mistake."""
    return name.rstrip("0123456789") == other.rstrip("0123456789")


@check(
    "small-segments",
    Severity.WARNING,
    title="Topics have very small segments",
    why="Each segment is several files: the broker opens, lists and deletes very many, and starts more slowly.",
    mending="Give the settings their defaults (1 GiB and 7 days).",
)
def small_segments(looks: Looks) -> Iterator[Fault]:
    last = looks.last
    for name, limit in (("segment.bytes", SMALL_SEGMENT_BYTES), ("segment.ms", SMALL_SEGMENT_MS)):
        topics = [
            topic for topic in sorted(last.topics) if (value := last.number(topic, name)) is not None and value < limit
        ]
        if topics:
            values = some(f"{topic} ({last.topic_setting(topic, name)})" for topic in topics)
            detail = f"{name} is below {limit:,} for {counted(len(topics), 'topic')}: {values}."
            command = looks.access.kaspar("topic", "alter", *topics[:_MOST_IN_COMMAND], "--unset", name)
            yield Fault(f"topic {topics[0]}" if len(topics) == 1 else "topics", detail, command)


_MOST_IN_COMMAND: Final = 20
