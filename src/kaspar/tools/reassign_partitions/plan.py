"""The JSON files of kafka-reassign-partitions: the target replicas of partitions, and the topics to move.

{"version": 1, "partitions": [{"topic": "foo", "partition": 1, "replicas": [1, 2], "log_dirs": ["any", "/data"]}]}
{"version": 1, "topics": [{"topic": "foo"}]}
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from kaspar.base.ids import TopicPartition
from kaspar.client.admin.log_dirs import Replica
from kaspar.tools.command_line import CommandFailed
from kaspar.tools.json_fields import as_array, as_integer, as_list, as_object, as_string, field, parse

VERSION: Final = 1
ANY_LOG_DIR: Final = "any"

Assignment = Mapping[TopicPartition, Sequence[int]]
_T = TypeVar("_T", TopicPartition, int, str)


@dataclass(frozen=True, slots=True)
class Plan:
    """A reassignment file as parsed, before any checks: a partition may occur twice."""

    partitions: tuple[tuple[TopicPartition, tuple[int, ...]], ...]
    log_dirs: Mapping[Replica, str]

    @property
    def assignment(self) -> dict[TopicPartition, tuple[int, ...]]:
        return dict(self.partitions)

    @property
    def topics(self) -> list[str]:
        return sorted({where.topic for where, _ in self.partitions})

    @property
    def broker_ids(self) -> set[int]:
        return {broker_id for _, replicas in self.partitions for broker_id in replicas}


def parse_plan(text: str) -> Plan:
    fields = _versioned(parse(text))
    partitions: list[tuple[TopicPartition, tuple[int, ...]]] = []
    log_dirs: dict[Replica, str] = {}
    for entry in as_array(fields.get("partitions", [])):
        each = as_object(entry)
        where = TopicPartition(as_string(field(each, "topic")), as_integer(field(each, "partition")))
        replicas = [as_integer(value) for value in as_list(field(each, "replicas"))]
        paths = [as_string(value) for value in as_list(each["log_dirs"])] if "log_dirs" in each else None
        if paths is not None and len(paths) != len(replicas):
            raise CommandFailed(
                f"Size of replicas list [{_joined(replicas, ', ')}] is different from size of log dirs list "
                f"[{_joined(paths, ', ')}] for partition {where}"
            )
        partitions.append((where, tuple(replicas)))
        for broker_id, path in zip(replicas, paths or (), strict=False):
            if path != ANY_LOG_DIR:
                log_dirs[Replica(broker_id, where)] = path
    return Plan(tuple(partitions), log_dirs)


def check_executable(plan: Plan) -> None:
    """Raise CommandFailed if the plan is empty or ambiguous."""
    if not plan.partitions:
        raise CommandFailed("Partition reassignment list cannot be empty")
    if not all(replicas for _, replicas in plan.partitions):
        raise CommandFailed("Partition replica list cannot be empty")
    if twice := duplicates(where for where, _ in plan.partitions):
        raise CommandFailed(f"Partition reassignment contains duplicate topic partitions: {_joined(twice, ',')}")
    repeated = [(where, duplicates(replicas)) for where, replicas in plan.partitions]
    if sentences := [f"{where} contains multiple entries for {_joined(ids, ',')}" for where, ids in repeated if ids]:
        raise CommandFailed(f"Partition replica lists may not contain duplicate entries: {'. '.join(sentences)}")


def parse_topics(text: str) -> list[str]:
    fields = _versioned(parse(text))
    topics = [as_string(field(as_object(entry), "topic")) for entry in as_array(fields.get("topics", []))]
    if twice := duplicates(topics):
        raise CommandFailed(f"List of topics to reassign contains duplicate entries: [{_joined(twice, ', ')}]")
    return topics


def format_assignment(assignment: Assignment, log_dirs: Mapping[Replica, str]) -> str:
    """A reassignment file. A replica without a known directory has "any"."""
    partitions = [
        {
            "topic": where.topic,
            "partition": where.partition,
            "replicas": list(assignment[where]),
            "log_dirs": [log_dirs.get(Replica(broker_id, where), ANY_LOG_DIR) for broker_id in assignment[where]],
        }
        for where in sorted(assignment)
    ]
    return json.dumps({"version": VERSION, "partitions": partitions}, separators=(",", ":"), ensure_ascii=False)


def duplicates(values: Iterable[_T]) -> list[_T]:
    return sorted(value for value, count in Counter(values).items() if count > 1)


def names(partitions: Iterable[TopicPartition]) -> str:
    return _joined(sorted(partitions), ",")


def plural(count: int) -> str:
    return "" if count == 1 else "s"


def _versioned(content: Any) -> Mapping[str, Any]:
    fields = as_object(content)
    version = as_integer(fields.get("version", VERSION))
    if version != VERSION:
        raise CommandFailed(f"Not supported version field value {version}")
    return fields


def _joined(values: Iterable[object], separator: str) -> str:
    return separator.join(map(str, values))
