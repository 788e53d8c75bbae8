"""Unused topics, and expensive topic settings."""

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Final

from kaspar.base.sentences import duration_text, some
from kaspar.monitor.doctor.check import check
from kaspar.monitor.doctor.checks.disks import replica_sizes
from kaspar.monitor.doctor.finding import Fault, Severity
from kaspar.monitor.doctor.looks import Looks
from kaspar.monitor.doctor.observation import Observation

SMALL_SEGMENT_BYTES: Final = 100 << 20
SMALL_SEGMENT_MS: Final = 10 * 60_000
MOST_SEGMENTS: Final = 200
AHEAD_S: Final = 300.0
ALIKE: Final = 0.85


@check(
    "misspelt-topic",
    Severity.NOTE,
    title="An empty topic's name looks like a typo",
    why="With auto.create.topics.enable, a client that misspells a topic creates it and waits there for records.",
    remedy="Fix the client, then delete the topic; or turn automatic creation off.",
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
            detail = f"Nothing was ever written to it and no group reads it, and there is a topic {close[0]}."
            yield Fault(f"topic {name}", detail, looks.access.kaspar("topic", "delete", name), (close[0],))


_SHORT: Final = 3
_MOST_COMPARED: Final = 100


def _is_numbered(name: str, other: str) -> bool:
    """Whether the names differ only in their trailing digits: they are a series, not a typo."""
    return name.rstrip("0123456789") == other.rstrip("0123456789")


@check(
    "timestamps-ahead",
    Severity.WARNING,
    title="Records have timestamps in the future",
    why="A producer's clock is ahead. Time-based retention keeps the whole segment until that time has passed, and "
    "seeking by time finds the wrong record.",
    remedy="Fix the producer's clock, or let brokers set timestamps: message.timestamp.type=LogAppendTime. The "
    "finding remains until these records are deleted.",
)
def timestamps_ahead(looks: Looks) -> Iterator[Fault]:
    last = looks.last
    for where, timestamp in sorted(last.newest_timestamps.items()):
        ahead_s = (timestamp - last.at_ms) / 1000
        if ahead_s > AHEAD_S:
            detail = f"The newest record of {where} has a timestamp {duration_text(ahead_s)} ahead."
            change = "message.timestamp.type=LogAppendTime"
            yield Fault(
                f"topic {where.topic}", detail, looks.access.kaspar("topic", "alter", where.topic, "--set", change)
            )


@check(
    "small-segments",
    Severity.WARNING,
    title="Topics have very small segments",
    why="Each segment is several files: the broker has to open, list and delete very many, and starts more slowly.",
    remedy="Reset the settings to their defaults (1 GiB and 7 days).",
)
def small_segments(looks: Looks) -> Iterator[Fault]:
    """Small segments of a small topic do no harm; only their number matters."""
    last = looks.last
    sizes: dict[str, int] = {}
    for where, size in replica_sizes(last).items():
        sizes[where.topic] = max(size, sizes.get(where.topic, 0))
    for name, segments in (("segment.bytes", _segments_by_size), ("segment.ms", _segments_by_time)):
        topics = {
            topic: count
            for topic in sorted(last.topics)
            if (count := segments(last, topic, sizes.get(topic, 0))) > MOST_SEGMENTS
        }
        if topics:
            values = some(f"{topic} ({name}={last.topic_setting(topic, name)})" for topic in topics)
            detail = f"A partition gets up to {max(topics.values()):,.0f} segments: {values}."
            command = looks.access.kaspar("topic", "alter", *list(topics)[:_MOST_IN_COMMAND], "--unset", name)
            yield Fault(f"topic {next(iter(topics))}" if len(topics) == 1 else "topics", detail, command)


def _segments_by_size(observation: Observation, topic: str, size: int) -> float:
    """The number of segments of its largest partition; 0 if segments are not small."""
    segment_bytes = observation.number(topic, "segment.bytes")
    return size / segment_bytes if segment_bytes and segment_bytes < SMALL_SEGMENT_BYTES else 0


def _segments_by_time(observation: Observation, topic: str, size: int) -> float:
    """The number of segments that retention keeps if records are written continuously."""
    segment_ms, retention_ms = observation.number(topic, "segment.ms"), observation.number(topic, "retention.ms")
    if size == 0 or not segment_ms or segment_ms >= SMALL_SEGMENT_MS or retention_ms is None:
        return 0
    return (retention_ms if retention_ms >= 0 else _YEAR_MS) / segment_ms


_MOST_IN_COMMAND: Final = 20
_YEAR_MS: Final = 365 * 24 * 3_600_000
