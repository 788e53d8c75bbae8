"""Runs a scenario with Kafka's commands and with ours, and compares exit codes, output and errors.

    def scenario(side: Side) -> None:
        topic = side.new_topic([(1, 2)])
        side.reassign("--list")

    same_on_both_sides(sides, scenario)

Each side has topics of its own, with the same replicas. What is compared is masked: names of topics, log directories,
the order of names in a list. Of what a Java program prints about an exception only the sentence counts: ours prints no
stack trace.
"""

import contextlib
import io
import itertools
import json
import re
import sys
import time
import unittest.mock
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kaspar.base.ids import TopicPartition
from kaspar.client import Client
from kaspar.client.admin.configs import ConfigResource, ResourceType, describe_configs
from kaspar.client.admin.log_dirs import Replica, describe_replica_log_dirs
from kaspar.client.admin.reassignments import list_reassignments
from kaspar.client.admin.session import Admin
from kaspar.client.admin.topics import PartitionDescription, TopicDescription, describe_topics
from kaspar.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kaspar.records import Record, build_batch
from kaspar.tools import leader_election
from kaspar.tools.reassign_partitions import command as reassign_partitions
from kaspar.tools.replica_verification import command as replica_verification
from kaspar.tools.streams_reset import command as streams_reset
from tests.peers.kafka_cluster import KafkaCluster
from tests.peers.kafka_tools import Done, KafkaTools
from tests.peers.observed import wait_until

_EXCEPTION = re.compile(r"^(Exception in thread \"main\" )?((java|com|org|joptsimple)\.[\w.$]+: )*")
_STACK = re.compile(
    r"^(Error [\w ]+: )?(\s+at |\s+\.\.\. \d+ more|\s+Suppressed: |Caused by: |(KafkaTools\$)?ToolExit)"
)
_LOGGED = re.compile(  # what these two log is all they say about errors
    r"^\[[^\]]+\] (ERROR|WARN) org\.apache\.kafka\."
    r"(tools\.(?!consumer\.ConsoleConsumer|ReplicaVerificationTool)|clients\.admin\.)"
)
_OURS_ONLY = re.compile(r"^(WARN |Try '\S+ --help' for the options\.|No connection to .* yet )")
_HELP_TABLE = re.compile(r"^Option(?: \(\* = required\))? +Description", re.MULTILINE)
_ERROR = re.compile(r"^ERROR: ((java|com|org|joptsimple)\.[\w.$]+: )+")
_LIST = re.compile(r"\b(topics|brokers|partitions|partition:) ([^\s,]+(?:, ?[^\s,]+)*)")
DYNAMIC = (1, 2)  # the sources of settings that a topic, or a broker, was given
_LOG_DIR = re.compile(r"/[^\s\"]*/(node-\d)/data(-2)?")


class Command(NamedTuple):
    kafka_class: str
    main: Callable[[Sequence[str] | None], int]


LEADER_ELECTION = Command("org.apache.kafka.tools.LeaderElectionCommand", leader_election.main)
REASSIGN = Command("org.apache.kafka.tools.reassign.ReassignPartitionsCommand", reassign_partitions.main)
STREAMS_RESET = Command("org.apache.kafka.tools.StreamsResetter", streams_reset.main)
VERIFICATION = Command("org.apache.kafka.tools.ReplicaVerificationTool", replica_verification.main)


class Throttles(NamedTuple):
    """The settings of throttles that are not the defaults."""

    of_topic: dict[str, str]
    of_brokers: dict[int, dict[str, str]]


class Side:
    """One of the two, with its own topics: the commands, and what a scenario needs beside them."""

    _numbers = itertools.count()

    def __init__(self, name: str, cluster: KafkaCluster, folder: Path, kafka_tools: KafkaTools | None) -> None:
        """Without `kafka_tools` it runs our commands."""
        self.name = name
        self.cluster = cluster
        self.seen: list[Any] = []
        self.topics: list[str] = []
        self._folder = folder
        self._kafka_tools = kafka_tools
        self._planned: dict[str, list[tuple[int, ...]]] = {}

    # --- commands: what they print is compared ------------------------------------------------------------------------

    def elect(self, *arguments: str | Path) -> Done:
        return self.run(LEADER_ELECTION, "--bootstrap-server", self.cluster.bootstrap_servers, *arguments)

    def reassign(self, *arguments: str | Path) -> Done:
        return self.run(REASSIGN, "--bootstrap-server", self.cluster.bootstrap_servers, *arguments)

    def run(self, command: Command, *arguments: str | Path) -> Done:
        done = self.run_unseen(command, *arguments)
        self.see(Done(done.code, sentences(done.output), sentences(done.errors)))
        return done

    def run_unseen(self, command: Command, *arguments: str | Path) -> Done:
        """For output of which a scenario compares a part."""
        if self._kafka_tools is not None:
            return self._kafka_tools.run(command.kafka_class, *arguments)
        done = run_ours(command, *arguments)
        assert "Traceback" not in done.errors
        return done

    def see(self, value: Any) -> None:
        """Must be the same on both sides."""
        self.seen.append(self._masked(value))

    def _masked(self, value: Any) -> Any:
        match value:
            case str():
                for number, topic in enumerate(self.topics):
                    value = value.replace(topic, f"TOPIC{number}")
                masked = _LOG_DIR.sub(r"\1", value.replace(str(self._folder), ""))
                return _LIST.sub(lambda found: f"{found[1]} {sorted(re.split(', ?', found[2]))}", masked)
            case Done():
                return Done(value.code, self._masked(value.output), self._masked(value.errors))
            case dict():
                return {self._masked(key): self._masked(each) for key, each in value.items()}
            case list():
                return [self._masked(each) for each in value]
        return value

    # --- what scenarios need ------------------------------------------------------------------------------------------

    def file(self, content: object) -> Path:
        """A file with this text, or with this value as JSON."""
        path = self._folder / "input.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    def plan(self, topic: str, *replicas: Sequence[int], log_dirs: Sequence[Sequence[str]] | None = None) -> Path:
        """A reassignment file: the replicas of the partitions 0, 1 and so on."""
        self._planned[topic] = [tuple(each) for each in replicas]
        partitions: list[dict[str, object]] = [
            {"topic": topic, "partition": number, "replicas": list(each)} for number, each in enumerate(replicas)
        ]
        for each, paths in zip(partitions, log_dirs or (), strict=False):
            each["log_dirs"] = list(paths)
        return self.file({"version": 1, "partitions": partitions})

    def new_topic(self, replicas: Sequence[Sequence[int]]) -> str:
        """The replicas of its partitions; their first is their leader."""
        name = f"{self.name}-{next(Side._numbers)}"
        assignments = tuple(
            CreatableReplicaAssignment(partition_index=number, broker_ids=tuple(each))
            for number, each in enumerate(replicas)
        )
        topic = CreatableTopic(name=name, num_partitions=-1, replication_factor=-1, assignments=assignments, configs=())
        with Client(self.cluster.bootstrap_servers) as client:
            response = client.request_controller(CreateTopicsRequest(topics=(topic,)), CreateTopicsResponse)
        assert response.topics[0].error_code == 0, response
        self.topics.append(name)
        wait_until(lambda: len(self.partitions(name)) == len(replicas), f"{name} is known")
        everywhere = [
            Replica(broker_id, TopicPartition(name, number))
            for number, each in enumerate(replicas)
            for broker_id in each
        ]
        with Admin(self.cluster.bootstrap_servers) as admin:
            wait_until(
                lambda: all(each.current for each in describe_replica_log_dirs(admin, everywhere).values()),
                f"{name} has all its logs",
            )
        return name

    def produce(self, topic: str, *, batches: int = 1, batch_bytes: int = 100) -> None:
        with Client(self.cluster.bootstrap_servers) as client:
            for _ in range(batches):
                record = Record(time.time_ns() // 1_000_000, None, bytes(batch_bytes))  # an old one would expire
                client.produce(topic, 0, bytes(build_batch([record])))

    def partitions(self, topic: str) -> tuple[PartitionDescription, ...]:
        """Once all nodes that run describe them in the same way."""
        views: list[tuple[PartitionDescription, ...]] = []

        def is_agreed() -> bool:
            views[:] = [self._view(number, topic) for number in self.cluster.running]
            return len(set(views)) == 1

        wait_until(is_agreed, f"all nodes describe {topic} in the same way")
        return views[0]

    def _view(self, node: int, topic: str) -> tuple[PartitionDescription, ...]:
        with Admin(self.cluster.node(node).bootstrap) as admin:
            described = describe_topics(admin, [topic])[topic]
        return described.partitions if isinstance(described, TopicDescription) else ()

    def wait_until_reassigned(self, topic: str) -> None:
        """Until the topic is as its last plan wants it, for the controller and for every node."""
        planned = self._planned[topic]

        def is_done() -> bool:
            with Admin(self.cluster.bootstrap_servers) as admin:
                if any(where.topic == topic for where in list_reassignments(admin)):
                    return False
            return [each.replicas for each in self.partitions(topic)][: len(planned)] == planned

        wait_until(is_done, f"{topic} is reassigned")

    def wait_for_leader(self, where: TopicPartition, leader: int) -> None:
        wait_until(lambda: self.partitions(where.topic)[where.partition].leader == leader, f"{leader} leads {where}")

    def log_dirs(self, node: int) -> list[str]:
        folder = self.cluster.node(node).folder
        return [str(folder / "data"), str(folder / "data-2")]

    def log_dir_of(self, topic: str, node: int) -> str | None:
        """Of the replica of partition 0; None while it is being moved."""
        replica = Replica(node, TopicPartition(topic, 0))
        with Admin(self.cluster.bootstrap_servers) as admin:
            found = describe_replica_log_dirs(admin, [replica])[replica]
        return found.current if found.future is None else None

    def wait_until_in(self, topic: str, node: int, path: str) -> None:
        wait_until(lambda: self.log_dir_of(topic, node) == path, f"{topic}-0 of node {node} is in {path}")

    def wait_for_throttles(self, topic: str, expected: Throttles) -> None:
        """A node learns of a changed setting a moment later."""
        wait_until(lambda: self._throttles(topic) == expected, f"the throttles of {topic} are {expected}")

    def _throttles(self, topic: str) -> Throttles:
        resources = [ConfigResource(ResourceType.TOPIC, topic)]
        resources += [ConfigResource(ResourceType.BROKER, str(number)) for number in self.cluster.numbers]
        with Admin(self.cluster.bootstrap_servers) as admin:
            found = describe_configs(admin, resources)
        changed: dict[str, dict[str, str]] = {}
        for resource, configs in found.items():
            assert isinstance(configs, dict)
            for name, each in configs.items():
                if ("throttled" in name or "alter.log.dirs.io" in name) and each.source in DYNAMIC:
                    changed.setdefault(resource.name, {})[name] = each.value or ""
        of_topic = changed.pop(topic, {})
        return Throttles(of_topic, {int(broker_id): each for broker_id, each in changed.items()})


def run_ours(command: Command, *arguments: str | Path, standard_input: bytes = b"") -> Done:
    output, errors = _Text(), _Text()
    given = io.TextIOWrapper(io.BytesIO(standard_input), encoding="utf-8")
    with (
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(errors),
        unittest.mock.patch.object(sys, "stdin", given),
    ):
        try:
            code = command.main([str(each) for each in arguments])
        except SystemExit as ended:
            code = int(ended.code or 0)
    return Done(code, output.text(), errors.text())


class _Text(io.TextIOWrapper):
    """What is printed as text or, through `buffer`, as bytes."""

    def __init__(self) -> None:
        self._bytes = io.BytesIO()
        super().__init__(self._bytes, encoding="utf-8", write_through=True)

    def text(self) -> str:
        return self._bytes.getvalue().decode()


def sentences(text: str) -> str:
    """What is left of a program's output without stack traces, log, help, and what only ours says."""
    table = _HELP_TABLE.search(text)
    kept: list[str] = []
    for line in (text[: table.start()] if table else text).splitlines():
        if _STACK.match(line) or _LOGGED.match(line) or _OURS_ONLY.match(line):
            continue
        sentence = _EXCEPTION.sub("", _ERROR.sub("ERROR: ", line))
        if sentence == line or not any(earlier.endswith(sentence) for earlier in kept):
            kept.append(sentence)
    return "\n".join(kept).strip("\n")


def same_on_both_sides(sides: Sequence[Side], scenario: Callable[[Side], None]) -> None:
    for side in sides:
        scenario(side)
    check_same(sides)


def check_same(sides: Sequence[Side]) -> None:
    kafka, ours = sides
    for number, (theirs, own) in enumerate(itertools.zip_longest(kafka.seen, ours.seen)):
        assert own == theirs, f"number {number} differs:\n  Kafka's: {theirs}\n  ours:    {own}"
