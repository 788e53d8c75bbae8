"""Disks: how full they are, and when they will be full."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from kaspar.base.ids import TopicPartition
from kaspar.base.sentences import bytes_text, duration_text, some
from kaspar.monitor.doctor.check import check
from kaspar.monitor.doctor.finding import Fault, Severity
from kaspar.monitor.doctor.looks import Looks
from kaspar.monitor.doctor.observation import LogDirSeen, Observation

FREE_RATIO: Final = 0.05
SOON_S: Final = 24 * 3600
LOOK_S: Final = 20.0
"""Growth over less time than this is no basis for a forecast."""
_TEMPORARY: Final = ("/tmp", "/var/tmp", "/dev/shm")


@check(
    "disk-almost-full",
    Severity.PROBLEM,
    title="A disk is almost full",
    why="A full disk takes its log directory, and all replicas in it, offline.",
    remedy="Delete records that are no longer needed, move replicas to another disk, or enlarge the volume.",
)
def disk_almost_full(looks: Looks) -> Iterator[Fault]:
    for broker_id, directory in _directories(looks.last):
        total, usable = directory.total_bytes, directory.usable_bytes
        if total and usable is not None and usable / total < FREE_RATIO:
            detail = f"{directory.path} has {bytes_text(usable)} of {bytes_text(total)} left."
            yield Fault(f"broker {broker_id}", detail, _shrink(looks, _sizes_by_topic(directory)))


@check(
    "disk-full-soon",
    Severity.WARNING,
    title="A disk will be full soon",
    why="A full disk takes its log directory, and all replicas in it, offline.",
    remedy="Shorten the retention of the fastest-growing topic, or enlarge the volume. The forecast assumes that "
    "records keep arriving at the observed rate and that none are deleted: a longer observation is more accurate.",
)
def disk_full_soon(looks: Looks) -> Iterator[Fault]:
    if looks.span_s < LOOK_S:
        return
    before = {(broker_id, each.path): each for broker_id, each in _directories(looks.first)}
    for broker_id, directory in _directories(looks.last):
        earlier = before.get((broker_id, directory.path))
        if earlier is None or directory.usable_bytes is None or directory.is_offline:
            continue
        growth = directory.size - earlier.size
        if growth <= 0:
            continue
        left_s = directory.usable_bytes / growth * looks.span_s
        if left_s < SOON_S:
            detail = (
                f"{directory.path} will be full in about {duration_text(left_s)}: logs grew by {bytes_text(growth)} "
                "in the "
                f"{looks.span_s:.0f} s of this observation, and {bytes_text(directory.usable_bytes)} are left."
            )
            grown = _sizes_by_topic(directory)
            grown.subtract(_sizes_by_topic(earlier))
            yield Fault(f"broker {broker_id}", detail, _shrink(looks, grown))


def _directories(observation: Observation) -> list[tuple[int, LogDirSeen]]:
    return [(broker_id, each) for broker_id, dirs in sorted(observation.log_dirs.items()) for each in dirs]


def _sizes_by_topic(directory: LogDirSeen) -> "Counter[str]":
    sizes: Counter[str] = Counter()
    for where, size in directory.sizes.items():
        sizes[where.topic] += size
    return sizes


def _shrink(looks: Looks, sizes: "Counter[str]") -> str | None:
    """A command that halves the retention of the topic with the largest size or growth."""
    candidates = [topic for topic, _ in sizes.most_common() if not topic.startswith("__")]
    if not candidates:
        return None
    topic = candidates[0]
    retention_ms = looks.last.number(topic, "retention.ms")
    if retention_ms is None or retention_ms <= 0:
        return looks.access.kaspar("topic", "trim", topic, "--before", "7 days ago")
    return looks.access.kaspar("topic", "alter", topic, "--set", f"retention.ms={retention_ms // 2}")


@check(
    "log-dirs-in-tmp",
    Severity.NOTE,
    title="Data is stored in a temporary directory",
    why="Many systems empty it at boot, or delete files that have not been used for days. Suitable for trials only.",
    remedy="Choose another directory: log.dirs of the broker, or kaspar up --dir FOLDER.",
)
def log_dirs_in_tmp(looks: Looks) -> Iterator[Fault]:
    found = [(broker_id, each.path) for broker_id, each in _directories(looks.last) if _is_temporary(each.path)]
    if found:
        brokers = sorted({broker_id for broker_id, _ in found})
        resource = f"broker {brokers[0]}" if len(brokers) == 1 else f"brokers {some(brokers)}"
        yield Fault(resource, f"Records are in {some(path for _, path in found)}.")


def _is_temporary(path: str, folders: Sequence[str] = _TEMPORARY) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)


def replica_sizes(observation: Observation) -> dict[TopicPartition, int]:
    """The size of each partition, which is that of its largest replica."""
    sizes: dict[TopicPartition, int] = {}
    for _, directory in _directories(observation):
        for where, size in directory.sizes.items():
            sizes[where] = max(size, sizes.get(where, 0))
    return sizes
