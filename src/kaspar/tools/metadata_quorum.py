"""kafka-metadata-quorum: shows and changes the controllers that store the metadata.

A cluster of Kaspar has one voter, its controller, and refuses to change it.
"""

import argparse
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Final

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import ZERO_UUID, uuid_from_text, uuid_to_text
from kaspar.client.admin.cluster import describe_cluster
from kaspar.client.admin.quorum import QuorumInfo, QuorumReplica, describe_quorum, remove_voter
from kaspar.client.admin.session import Admin
from kaspar.client.core import UnsupportedByPeer
from kaspar.tools.argparse4j import Argparse4jOptions, to_integer
from kaspar.tools.client_config import add_command_config
from kaspar.tools.command_line import CommandFailed, open_admin, run
from kaspar.tools.kafka_errors import report
from kaspar.tools.plain_tables import plain_table

_COLUMNS: Final = (
    "NodeId",
    "DirectoryId",
    "LogEndOffset",
    "Lag",
    "LastFetchTimestamp",
    "LastCaughtUpTimestamp",
    "Status",
)
_API_OF_COMMAND: Final = {
    "describe": "DESCRIBE_QUORUM",
    "add-controller": "ADD_RAFT_VOTER",
    "remove-controller": "REMOVE_RAFT_VOTER",
}


def command_options() -> Argparse4jOptions:
    options = Argparse4jOptions(
        "kafka-metadata-quorum",
        description="Describe the quorum of controllers that keeps the metadata, or change its members.",
        epilog="Example: kafka-metadata-quorum --bootstrap-server localhost:9092 describe --status",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    servers = options.add_mutually_exclusive_group(required=True)
    servers.add_argument("--bootstrap-server", metavar="HOST:PORT", help="brokers to connect to")
    servers.add_argument("--bootstrap-controller", metavar="HOST:PORT", help="controllers to connect to")
    add_command_config(options)
    commands = options.add_subparsers(dest="command", required=True)
    describe = commands.add_parser(
        "describe", help="show the state of the quorum", description="Show the state of the quorum."
    )
    describe.add_argument("--status", action="store_true", help="its leader, its members and how far they are behind")
    describe.add_argument("--replication", action="store_true", help="the progress of each member")
    describe.add_argument("--human-readable", action="store_true", help="with --replication: times as so long ago")
    add = commands.add_parser(
        "add-controller",
        help="add the controller whose settings file is --command-config",
        description="Add the controller whose settings file is --command-config. Clusters of Kaspar refuse this.",
    )
    remove = commands.add_parser(
        "remove-controller",
        help="remove a controller",
        description="Remove a controller from the quorum. Clusters of Kaspar refuse this.",
    )
    remove.add_argument(
        "--controller-id", "-i", type=to_integer, required=True, metavar="ID", help="the node.id of the controller"
    )
    remove.add_argument(
        "--controller-directory-id",
        "-d",
        required=True,
        metavar="ID",
        help="the id of its metadata directory, as describe shows it",
    )
    for command in (add, remove):
        command.add_argument("--dry-run", action="store_true", help="only show what would be done")
    return options


def main(argv: Sequence[str] | None = None) -> int:
    options = command_options().parse_args(argv)
    return run(lambda: _run(options), report)


def _run(options: argparse.Namespace) -> None:
    with open_admin(
        options.bootstrap_server or options.bootstrap_controller,
        options.command_config,
        client_id="metadata-quorum-tool",
        via_controllers=options.bootstrap_server is None,
    ) as admin:
        try:
            _dispatch(admin, options)
        except UnsupportedByPeer:
            raise Refused(
                ErrorCode.UNSUPPORTED_VERSION, f"The node does not support {_API_OF_COMMAND[options.command]}"
            ) from None


def _dispatch(admin: Admin, options: argparse.Namespace) -> None:
    match options.command:
        case "describe":
            _describe(admin, options)
        case "add-controller":
            from kaspar.tools.quorum_controllers import add_controller  # reads the controller's own files

            print(add_controller(admin, options.command_config, dry_run=options.dry_run))
        case _:
            _remove(admin, options)


def _remove(admin: Admin, options: argparse.Namespace) -> None:
    if options.controller_id < 0:
        raise CommandFailed(f"Invalid negative --controller-id: {options.controller_id}")
    try:
        directory_id = uuid_from_text(options.controller_directory_id)
    except ValueError as problem:
        raise CommandFailed(f"Failed to parse --controller-directory-id: {problem}") from None
    if not options.dry_run:
        remove_voter(admin, options.controller_id, directory_id)
    done = "DRY RUN of removing " if options.dry_run else "Removed "
    print(f"{done} KRaft controller {options.controller_id} with directory id {uuid_to_text(directory_id)}")


# --- describe ---------------------------------------------------------------------------------------------------------


def _describe(admin: Admin, options: argparse.Namespace) -> None:
    if options.status and options.replication:
        raise CommandFailed("Only one of --status or --replication should be specified with describe sub-command")
    if options.replication:
        rows = replication_rows(describe_quorum(admin), human_readable=options.human_readable)
        for line in plain_table(_COLUMNS, rows):
            print(line)
    elif options.status:
        if options.human_readable:
            raise CommandFailed("The option --human-readable is only supported along with --replication")
        print(status(describe_cluster(admin).cluster_id, describe_quorum(admin)))
    else:
        raise CommandFailed("One of --status or --replication must be specified with describe sub-command")


def status(cluster_id: str, quorum: QuorumInfo) -> str:
    leader = _leader(quorum)
    slowest = min(quorum.voters, key=lambda each: each.log_end_offset)
    lag_ms = 0
    if slowest is not leader:
        times = (leader.last_caught_up_timestamp, slowest.last_caught_up_timestamp)
        lag_ms = -1 if times[0] is None or times[1] is None else times[0] - times[1]
    lines = {
        "ClusterId": cluster_id,
        "LeaderId": quorum.leader_id,
        "LeaderEpoch": quorum.leader_epoch,
        "HighWatermark": quorum.high_watermark,
        "MaxFollowerLag": leader.log_end_offset - slowest.log_end_offset,
        "MaxFollowerLagTimeMs": lag_ms,
        "CurrentVoters": _nodes(quorum.voters),
        "CurrentObservers": _nodes(quorum.observers),
    }
    return "\n".join(f"{name + ':':<24}{value}" for name, value in lines.items())


def _leader(quorum: QuorumInfo) -> QuorumReplica:
    leader = next((each for each in quorum.voters if each.replica_id == quorum.leader_id), None)
    if leader is None:
        raise CommandFailed("The quorum has no leader now")
    return leader


def _nodes(replicas: Iterable[QuorumReplica]) -> str:
    texts = []
    for each in replicas:
        fields = [f'"id": {each.replica_id}']
        if each.directory_id != ZERO_UUID:
            fields.append(f'"directoryId": "{uuid_to_text(each.directory_id)}"')
        if each.endpoints:
            addresses = ", ".join(f'"{name}://{host}:{port}"' for name, host, port in each.endpoints)
            fields.append(f'"endpoints": [{addresses}]')
        texts.append(f"{{{', '.join(fields)}}}")
    return f"[{', '.join(texts)}]"


def replication_rows(quorum: QuorumInfo, *, human_readable: bool) -> list[list[object]]:
    leader = _leader(quorum)
    followers = [each for each in quorum.voters if each is not leader]
    now_ms = time.time_ns() // 1_000_000

    def shown(timestamp_ms: int | None) -> str:
        if timestamp_ms is None:
            return "-1"
        return f"{max(0, now_ms - timestamp_ms)} ms ago" if human_readable else str(timestamp_ms)

    return [
        [
            each.replica_id,
            uuid_to_text(each.directory_id),
            each.log_end_offset,
            leader.log_end_offset - each.log_end_offset,
            shown(each.last_fetch_timestamp),
            shown(each.last_caught_up_timestamp),
            kind,
        ]
        for kind, replicas in (("Leader", [leader]), ("Follower", followers), ("Observer", quorum.observers))
        for each in replicas
    ]


if __name__ == "__main__":
    sys.exit(main())
