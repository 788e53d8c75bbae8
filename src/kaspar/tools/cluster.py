"""kafka-cluster: shows the id of a cluster and its nodes, and unregisters a broker that was removed for good."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import Final

from kaspar.client.admin.cluster import ClusterNode, describe_cluster, unregister_broker
from kaspar.client.admin.session import Admin
from kaspar.client.core import UnsupportedByPeer
from kaspar.tools.argparse4j import Argparse4jOptions, to_integer
from kaspar.tools.command_line import CommandFailed, open_admin, run
from kaspar.tools.kafka_errors import report

_HELP_CODE: Final = 1
_RACK_WIDTH: Final = 10
"""The width of the rack column if no node has a rack."""


def command_options() -> Argparse4jOptions:
    options = Argparse4jOptions(
        "kafka-cluster",
        help_code=_HELP_CODE,
        description="Show the id of a cluster and its nodes, or unregister a broker.",
        epilog="Example: kafka-cluster cluster-id --bootstrap-server localhost:9092",
    )
    commands = options.add_subparsers(dest="command", required=True)
    cluster_id = commands.add_parser(
        "cluster-id", help="show the id of the cluster", description="Show the id of the cluster."
    )
    unregister = commands.add_parser(
        "unregister",
        help="forget a broker that will not come back",
        description="Forget a broker that is stopped and will not come back. Move its replicas elsewhere first.",
    )
    endpoints = commands.add_parser(
        "list-endpoints",
        help="list the brokers, or the controllers",
        description="List the addresses of the brokers, or of the controllers.",
    )
    for command in (cluster_id, unregister, endpoints):
        servers = command.add_mutually_exclusive_group(required=True)
        servers.add_argument("--bootstrap-server", "-b", metavar="HOST:PORT", help="brokers to connect to")
        servers.add_argument("--bootstrap-controller", "-C", metavar="HOST:PORT", help="controllers to connect to")
        command.add_argument("--config", metavar="FILE", help="deprecated: --command-config")
        command.add_argument(
            "--command-config", "-c", metavar="FILE", help="a properties file with settings of the client"
        )
    unregister.add_argument("--id", "-i", type=to_integer, required=True, help="the id of the broker")
    endpoints.add_argument(
        "--include-fenced-brokers", action="store_true", help="also list brokers that are registered but not in use"
    )
    return options


def main(argv: Sequence[str] | None = None) -> int:
    options = command_options().parse_args(argv)
    return run(lambda: _run(options), report)


def _run(options: argparse.Namespace) -> None:
    config_file = options.command_config
    if options.config is not None:
        if config_file is not None:
            raise CommandFailed("--config and --command-config cannot be specified together.")
        print(
            "Option --config has been deprecated and will be removed in a future version. Use --command-config instead."
        )
        config_file = options.config
    with open_admin(
        options.bootstrap_server or options.bootstrap_controller,
        config_file,
        client_id="cluster-tool",
        via_controllers=options.bootstrap_server is None,
    ) as admin:
        match options.command:
            case "cluster-id":
                print(f"Cluster ID: {describe_cluster(admin).cluster_id}")
            case "unregister":
                _unregister(admin, options.id)
            case _:
                _list_endpoints(admin, include_fenced_brokers=options.include_fenced_brokers)


def _unregister(admin: Admin, broker_id: int) -> None:
    try:
        unregister_broker(admin, broker_id)
    except UnsupportedByPeer:
        print("The target cluster does not support the broker unregistration API.")
        return
    print(f"Broker {broker_id} is no longer registered.")


def _list_endpoints(admin: Admin, *, include_fenced_brokers: bool) -> None:
    if admin.via_controllers and include_fenced_brokers:
        raise CommandFailed("The option --include-fenced-brokers is only supported with --bootstrap-server option")
    described = describe_cluster(admin, include_fenced_brokers=include_fenced_brokers)
    for line in endpoint_table(described.nodes, are_controllers=admin.via_controllers):
        print(line)


def endpoint_table(nodes: Sequence[ClusterNode], *, are_controllers: bool) -> Iterator[str]:
    kind = "controller" if are_controllers else "broker"
    host_width = max(len(each.host) for each in nodes)
    rack_width = max((len(each.rack) for each in nodes if each.rack is not None), default=_RACK_WIDTH)
    widths = {"ID": 10, "HOST": host_width, "PORT": 10, "RACK": rack_width, "STATE": 10, "ENDPOINT_TYPE": 15}
    if are_controllers:
        del widths["STATE"]
    rows: list[dict[str, object]] = [{name: name for name in widths}]
    for node in nodes:
        state = "fenced" if node.is_fenced else "unfenced"
        rows.append(
            {
                "ID": node.node_id,
                "HOST": node.host,
                "PORT": node.port,
                "RACK": node.rack or "null",
                "STATE": state,
                "ENDPOINT_TYPE": kind,
            }
        )
    for row in rows:
        yield " ".join(f"{row[name]!s:<{width}}" for name, width in widths.items())


if __name__ == "__main__":
    sys.exit(main())
