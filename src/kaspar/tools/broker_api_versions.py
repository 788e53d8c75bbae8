"""kafka-broker-api-versions: prints the APIs that each broker serves, with their versions."""

import argparse
import sys
from collections.abc import Iterable, Sequence
from typing import Final

from kaspar.base.errors import ErrorCode, KasparError, Refused
from kaspar.client.admin.api_versions import ServedApi, describe_api_versions
from kaspar.client.admin.cluster import ClusterNode, describe_cluster
from kaspar.client.admin.session import Admin
from kaspar.protocol.api import KNOWN_VERSIONS, ApiKey, api_name
from kaspar.protocol.api_keys import FIRST_OWN_KEY
from kaspar.tools.client_config import add_command_config
from kaspar.tools.command_line import CommandFailed, KafkaOptions, open_admin, run
from kaspar.tools.kafka_errors import message_of

REQUEST_TIMEOUT_S: Final = 5.0

_OF_CONTROLLERS: Final = {
    ApiKey.VOTE,
    ApiKey.BEGIN_QUORUM_EPOCH,
    ApiKey.END_QUORUM_EPOCH,
    ApiKey.ALTER_PARTITION,
    ApiKey.ENVELOPE,
    ApiKey.FETCH_SNAPSHOT,
    ApiKey.BROKER_REGISTRATION,
    ApiKey.BROKER_HEARTBEAT,
    ApiKey.ALLOCATE_PRODUCER_IDS,
    ApiKey.CONTROLLER_REGISTRATION,
    ApiKey.ASSIGN_REPLICAS_TO_DIRS,
    ApiKey.UPDATE_RAFT_VOTER,
}
CLIENT_APIS: Final = [key for key in ApiKey if key not in _OF_CONTROLLERS and key < FIRST_OWN_KEY]
"""The APIs that Kafka 4.3's clients expect of a broker. One that is missing is reported as unsupported."""


def command_options() -> KafkaOptions:
    options = KafkaOptions(
        "kafka-broker-api-versions",
        "Print the APIs that each broker serves: their versions, and the newest one that clients of Kafka 4.3 use.",
        example="kafka-broker-api-versions --bootstrap-server localhost:9092",
    )
    options.add_argument("--bootstrap-server", metavar="HOST:PORT", help="brokers to connect to. REQUIRED")
    add_command_config(options)
    return options


def main(argv: Sequence[str] | None = None) -> int:
    parser = command_options()
    options = parser.parse(argv)
    parser.require(options, "bootstrap-server")
    return run(lambda: _run(options), _report)


def _report(problem: KasparError) -> None:
    print(message_of(problem), file=sys.stderr)


def _run(options: argparse.Namespace) -> None:
    with open_admin(
        options.bootstrap_server,
        options.command_config,
        client_id="kafka-broker-api-versions",
        api_timeout_s=REQUEST_TIMEOUT_S,
        request_timeout_s=REQUEST_TIMEOUT_S,
    ) as admin:
        for broker in _brokers(admin, options.bootstrap_server):
            node = f"{broker.host}:{broker.port} (id: {broker.node_id} rack: {broker.rack or 'null'} isFenced: false)"
            try:
                served = describe_api_versions(admin, broker.node_id)
            except KasparError as problem:
                print(f"{node} -> ERROR: {message_of(problem)}")
            else:
                print(f"{node} -> (\n\t" + ",\n\t".join(lines(served)) + "\n)")


def _brokers(admin: Admin, servers: str) -> Sequence[ClusterNode]:
    try:
        return describe_cluster(admin).nodes
    except Refused as refused:
        if refused.code is not ErrorCode.REQUEST_TIMED_OUT:
            raise
        nodes = [
            f"{server.strip()} (id: {-number} rack: null isFenced: false)" for number, server in _numbered(servers)
        ]
        raise CommandFailed(f"Request METADATA failed on brokers [{', '.join(nodes)}]") from None


def _numbered(servers: str) -> Iterable[tuple[int, str]]:
    return enumerate(servers.split(","), start=1)


def lines(served: Sequence[ServedApi]) -> list[str]:
    """A line for each API of a broker, and for each API that is missing."""
    texts = {api.key: _line(api) for api in served}
    missing = {int(key): f"{api_name(key)}({key:d}): UNSUPPORTED" for key in CLIENT_APIS if key not in texts}
    return [text for _, text in sorted({**texts, **missing}.items())]


def _line(api: ServedApi) -> str:
    versions = str(api.first) if api.first == api.last else f"{api.first} to {api.last}"
    if api.key not in KNOWN_VERSIONS:
        return f"UNKNOWN({api.key}): {versions}"
    key = ApiKey(api.key)
    first, last, _ = KNOWN_VERSIONS[key]
    usable = f"usable: {min(last, api.last)}"
    if api.first > last:
        usable = "unusable: node too new"
    elif api.last < first:
        usable = "unusable: node too old"
    return f"{api_name(key)}({api.key}): {versions} [{usable}]"
