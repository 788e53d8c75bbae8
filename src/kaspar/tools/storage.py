"""kafka-storage: formats log directories, and shows their contents.

A broker formats the directories of a new cluster by itself. This command is for what only an operator can know: that an
empty directory is new, and not a volume that failed to mount; or that a directory unknown to the cluster may be used.
"""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from kaspar.base.errors import KasparError
from kaspar.base.ids import random_uuid, uuid_to_text
from kaspar.tools.argparse4j import Argparse4jOptions
from kaspar.tools.feature_levels import LATEST_PRODUCTION, UnknownLevel, add_local_commands, run_local_command


def command_options() -> Argparse4jOptions:
    parser = Argparse4jOptions(
        "kafka-storage",
        description="Format log directories, or show what is in them. A new cluster needs no formatting.",
        epilog="Example: kafka-storage format --ignore-formatted -c server.properties",
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    info = commands.add_parser(
        "info",
        help="show what is in the log directories",
        description="Show the ids of the log directories, also while the broker runs.",
    )
    formatting = commands.add_parser(
        "format",
        help="give every directory of log.dirs an id and register it with the cluster",
        description="Give every directory of log.dirs an id and register it with the cluster, so that the broker uses "
        "it. The broker must be stopped.",
    )
    for command in (info, formatting):
        command.add_argument("--config", "-c", required=True, metavar="FILE", help="the broker's settings file")
    formatting.add_argument(
        "--cluster-id",
        "-t",
        metavar="ID",
        help="the id of a new cluster (default: a random one, as random-uuid prints)",
    )
    formatting.add_argument(
        "--ignore-formatted", "-g", action="store_true", help="skip directories that are already formatted"
    )
    formatting.add_argument(
        "--release-version",
        "-r",
        metavar="RELEASE",
        help=f"start a new cluster with the features of this release of Kafka (default: {LATEST_PRODUCTION})",
    )
    formatting.add_argument(
        "--feature",
        "-f",
        action="append",
        default=[],
        metavar="FEATURE=LEVEL",
        help="start a new cluster with a feature at this level: transaction.version=1; may be repeated",
    )
    quorum = formatting.add_mutually_exclusive_group()
    unused = "accepted for compatibility; there is no Raft quorum to set up"
    quorum.add_argument("--standalone", "-s", action="store_true", help=unused)
    quorum.add_argument("--no-initial-controllers", "-N", action="store_true", help=unused)
    quorum.add_argument("--initial-controllers", "-I", metavar="CONTROLLERS", help=unused)
    formatting.add_argument(
        "--add-scram",
        "-S",
        action="append",
        default=[],
        metavar="CREDENTIAL",
        help="a user that can log in by SCRAM: 'SCRAM-SHA-256=[name=alice,password=alice-secret]'; may be repeated",
    )
    add_local_commands(commands, "-r", "-f")
    commands.add_parser("random-uuid", help="print a random cluster id", description="Print a random cluster id.")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    arguments = command_options().parse_args(argv)
    if arguments.command == "random-uuid":
        print(uuid_to_text(random_uuid()))
        return 0
    # Imported here so that --help is fast.
    from kaspar.config import BrokerConfig, load_settings
    from kaspar.storage import DirectoryInUse

    try:
        if run_local_command(arguments):
            return 0
        config = BrokerConfig.of(load_settings(Path(arguments.config)))
        if arguments.command == "info":
            return show_directories(config.log_dirs)
        from kaspar.tools.formatting import format_directories, levels_of_new_cluster
        from kaspar.tools.scram_arguments import parse_scram_arguments

        for sentence in asyncio.run(
            format_directories(
                config,
                arguments.cluster_id,
                ignore_formatted=arguments.ignore_formatted,
                scram_users=parse_scram_arguments(arguments.add_scram),
                levels=levels_of_new_cluster(arguments.release_version, arguments.feature),
            )
        ):
            print(sentence)
    except DirectoryInUse as problem:
        print(f"kafka-storage: {problem.directory} is in use: stop the broker first", file=sys.stderr)
        return 1
    except UnknownLevel as problem:
        print(problem, file=sys.stderr)
        return 1
    except KasparError as problem:
        print(f"kafka-storage: {problem}", file=sys.stderr)
        return 1
    return 0


def show_directories(log_dirs: Sequence[str]) -> int:
    """Takes no lock, so that it also works while a broker runs. Returns 1 if there are problems."""
    from kaspar.storage import OsFiles
    from kaspar.storage.directories.folder_metadata import MetaProperties, read_meta_properties

    found: list[MetaProperties] = []
    problems = [f"{folder} does not exist" for folder in sorted(log_dirs) if not Path(folder).exists()]
    folders = [folder for folder in sorted(log_dirs) if Path(folder).exists()]
    for folder in folders:
        try:
            if not Path(folder).is_dir():
                problems.append(f"{folder} is not a directory")
            elif (meta := read_meta_properties(OsFiles(), folder)) is None:
                problems.append(f"{folder} is not formatted.")
            else:
                found.append(meta)
        except (KasparError, OSError) as problem:
            problems.append(f"{folder} cannot be read: {problem}")
    if len({meta.cluster_id for meta in found}) > 1:
        problems.append("Mismatched cluster IDs between storage directories.")
    if folders:
        _print_list("Found log directories:" if len(folders) > 1 else "Found log directory:", folders)
    if found:
        first = found[0]
        directory = "" if first.directory_id is None else f"directory.id={uuid_to_text(first.directory_id)}, "
        print(f"Found metadata: {{cluster.id={first.cluster_id}, {directory}node.id={first.node_id}, version=1}}\n")
    if problems:
        _print_list("Found problems:" if len(problems) > 1 else "Found problem:", problems)
    return 1 if problems else 0


def _print_list(title: str, lines: Sequence[str]) -> None:
    print("\n  ".join([title, *lines]))
    print()


if __name__ == "__main__":
    sys.exit(main())
