"""Kafka's commands by their names, with the class of Kafka's own and the entry point of ours.

A command that is not installed yet is listed as well: its tests are skipped until `[project.scripts]` has it.
"""

import importlib
import tomllib
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import Final

from tests.compat.tools.comparing import Command

PYPROJECT: Final = Path(__file__).parents[3] / "pyproject.toml"


@cache
def entry_points() -> dict[str, str]:
    """Of every installed command: module:function."""
    scripts: dict[str, str] = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]["scripts"]
    return scripts


def _main(name: str, argv: Sequence[str] | None) -> int:
    module, function = entry_points()[name].split(":")
    code: int = getattr(importlib.import_module(module), function)(argv)
    return code


COMMANDS: Final[dict[str, Command]] = {}


def _command(name: str, kafka_class: str) -> Command:
    command = Command(kafka_class, partial(_main, name))
    COMMANDS[name] = command
    return command


ACLS = _command("kafka-acls", "org.apache.kafka.tools.AclCommand")
BROKER_API_VERSIONS = _command("kafka-broker-api-versions", "org.apache.kafka.tools.BrokerApiVersionsCommand")
CLIENT_METRICS = _command("kafka-client-metrics", "org.apache.kafka.tools.ClientMetricsCommand")
CLUSTER = _command("kafka-cluster", "org.apache.kafka.tools.ClusterTool")
CONFIGS = _command("kafka-configs", "kafka.admin.ConfigCommand")
CONSOLE_CONSUMER = _command("kafka-console-consumer", "org.apache.kafka.tools.consumer.ConsoleConsumer")
CONSOLE_PRODUCER = _command("kafka-console-producer", "org.apache.kafka.tools.ConsoleProducer")
CONSUMER_GROUPS = _command("kafka-consumer-groups", "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand")
CONSUMER_PERF_TEST = _command("kafka-consumer-perf-test", "org.apache.kafka.tools.ConsumerPerformance")
DELEGATION_TOKENS = _command("kafka-delegation-tokens", "org.apache.kafka.tools.DelegationTokenCommand")
DELETE_RECORDS = _command("kafka-delete-records", "org.apache.kafka.tools.DeleteRecordsCommand")
DUMP_LOG = _command("kafka-dump-log", "org.apache.kafka.tools.DumpLogSegments")
E2E_LATENCY = _command("kafka-e2e-latency", "org.apache.kafka.tools.EndToEndLatency")
FEATURES = _command("kafka-features", "org.apache.kafka.tools.FeatureCommand")
GET_OFFSETS = _command("kafka-get-offsets", "org.apache.kafka.tools.GetOffsetShell")
GROUPS = _command("kafka-groups", "org.apache.kafka.tools.GroupsCommand")
LEADER_ELECTION = _command("kafka-leader-election", "org.apache.kafka.tools.LeaderElectionCommand")
LOG_DIRS = _command("kafka-log-dirs", "org.apache.kafka.tools.LogDirsCommand")
METADATA_QUORUM = _command("kafka-metadata-quorum", "org.apache.kafka.tools.MetadataQuorumCommand")
PRODUCER_PERF_TEST = _command("kafka-producer-perf-test", "org.apache.kafka.tools.ProducerPerformance")
REASSIGN_PARTITIONS = _command("kafka-reassign-partitions", "org.apache.kafka.tools.reassign.ReassignPartitionsCommand")
REPLICA_VERIFICATION = _command("kafka-replica-verification", "org.apache.kafka.tools.ReplicaVerificationTool")
STORAGE = _command("kafka-storage", "kafka.tools.StorageTool")
STREAMS_APPLICATION_RESET = _command("kafka-streams-application-reset", "org.apache.kafka.tools.StreamsResetter")
TOPICS = _command("kafka-topics", "org.apache.kafka.tools.TopicCommand")
TRANSACTIONS = _command("kafka-transactions", "org.apache.kafka.tools.TransactionsCommand")
VERIFIABLE_CONSUMER = _command("kafka-verifiable-consumer", "org.apache.kafka.tools.VerifiableConsumer")
VERIFIABLE_PRODUCER = _command("kafka-verifiable-producer", "org.apache.kafka.tools.VerifiableProducer")
