"""kafka-log-dirs: prints the replicas in the log directories of brokers, as JSON."""

import argparse
import json
from collections.abc import Collection, Sequence
from typing import Any, Final

from kaspar.client.admin.cluster import describe_cluster
from kaspar.client.admin.log_dirs import LogDir, describe_log_dirs
from kaspar.client.admin.session import Admin
from kaspar.tools.client_config import add_command_config
from kaspar.tools.command_line import CommandFailed, KafkaOptions, open_admin, run
from kaspar.tools.java_numbers import parse_int
from kaspar.tools.kafka_errors import exception_name, report

_VERSION: Final = 1


def command_options() -> KafkaOptions:
    options = KafkaOptions(
        "kafka-log-dirs",
        "Print the log directories of brokers as JSON: the partitions in each with their sizes in bytes, how far a "
        "replica is behind, and whether it is being moved there. The JSON is the third line.",
        example="kafka-log-dirs --bootstrap-server localhost:9092 --describe --topic-list orders | tail -1",
    )
    options.add_argument("--bootstrap-server", metavar="HOST:PORT", help="brokers to connect to. REQUIRED")
    add_command_config(options)
    options.add_argument("--describe", action="store_true", help="describe log directories. REQUIRED")
    options.add_argument(
        "--topic-list", default="", metavar="TOPICS", help="only the partitions of these topics, such as orders,clicks"
    )
    options.add_argument("--broker-list", default="", metavar="IDS", help="only these brokers, such as 0,1,2")
    return options


def main(argv: Sequence[str] | None = None) -> int:
    parser = command_options()
    options = parser.parse(argv)
    parser.require(options, "bootstrap-server", "describe")
    return run(lambda: _run(options), report)


def _run(options: argparse.Namespace) -> None:
    topics = {topic for topic in options.topic_list.split(",") if topic}
    wanted = _ids(options.broker_list)
    with open_admin(options.bootstrap_server, options.command_config, client_id="kafka-log-dirs") as admin:
        brokers = _brokers(admin, wanted)
        print("Querying brokers for log directories information")
        log_dirs = {broker_id: describe_log_dirs(admin, broker_id) for broker_id in brokers}
        print(f"Received log directory information from brokers {','.join(map(str, brokers))}")
        print(json.dumps(as_json(log_dirs, topics), separators=(",", ":"), ensure_ascii=False))


def _ids(text: str) -> set[int]:
    ids = set()
    for each in filter(None, text.split(",")):
        try:
            ids.add(parse_int(each))
        except ValueError:
            raise CommandFailed(f'For input string: "{each}"') from None
    return ids


def _brokers(admin: Admin, wanted: Collection[int]) -> list[int]:
    existing = [each.node_id for each in describe_cluster(admin).nodes]
    if missing := sorted({*wanted} - {*existing}):
        raise CommandFailed(
            f"ERROR: The given brokers do not exist from --broker-list: {','.join(map(str, missing))}. "
            f"Current existent brokers: {','.join(map(str, existing))}"
        )
    return sorted(wanted or existing)


def as_json(log_dirs: dict[int, list[LogDir]], topics: Collection[str]) -> dict[str, Any]:
    """If `topics` is empty, all topics are included."""
    return {
        "brokers": [
            {"broker": broker_id, "logDirs": [_log_dir(each, topics) for each in directories]}
            for broker_id, directories in log_dirs.items()
        ],
        "version": _VERSION,
    }


def _log_dir(directory: LogDir, topics: Collection[str]) -> dict[str, Any]:
    replicas = [
        {"partition": str(where), "size": each.partition_size, "offsetLag": each.offset_lag, "isFuture": is_future}
        for is_future, those in ((False, directory.replicas), (True, directory.future_replicas))
        for where, each in sorted(those.items())
        if not topics or where.topic in topics
    ]
    error = None if directory.error is None else exception_name(directory.error.code)
    return {"partitions": replicas, "error": error, "logDir": directory.path}
