"""kafka-storage: formats log directories and shows what is in them.

A broker formats the directories of a new cluster by itself. This command is for what only an operator can know: that an
empty directory is new, and not a volume that failed to mount; that a directory unknown to the cluster may be used.
"""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from kaspar.base.errors import KasparError
from kaspar.base.ids import random_uuid, uuid_to_text
from kaspar.tools.argparse4j import Argparse4jOptions


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
        "--standalone", "-s", action="store_true", help="accepted for compatibility; there is no Raft quorum to set up"
    )
    formatting.add_argument(
        "--add-scram",
        "-S",
        action="append",
        default=[],
        metavar="CREDENTIAL",
        help="a user that can log in by SCRAM: 'SCRAM-SHA-256=[name=alice,password=alice-secret]'; may be repeated",
    )
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
        config = BrokerConfig.of(load_settings(Path(arguments.config)))
        if arguments.command == "info":
            return _info(config.log_dirs)
        from kaspar.tools.formatting import format_directories
        from kaspar.tools.scram_arguments import parse_scram_arguments

        for sentence in asyncio.run(
            format_directories(
                config,
                arguments.cluster_id,
                ignore_formatted=arguments.ignore_formatted,
                scram_users=parse_scram_arguments(arguments.add_scram),
            )
        ):
            print(sentence)
    except DirectoryInUse as problem:
        print(f"kafka-storage: {problem.directory} is in use: stop the broker first", file=sys.stderr)
        return 1
    except KasparError as problem:
        print(f"kafka-storage: {problem}", file=sys.stderr)
        return 1
    return 0


def _info(log_dirs: Sequence[str]) -> int:
    """Takes no lock, so that it also works while a broker runs. Returns 1 if something is wrong."""
    from kaspar.storage import OsFiles
    from kaspar.storage.directories.folder_metadata import read_meta_properties

    problems = []
    print("Found log directories:" if len(log_dirs) > 1 else "Found log directory:")
    for folder in log_dirs:
        print(f"  {folder}")
    print()
    for folder in log_dirs:
        try:
            if not Path(folder).is_dir():
                problems.append(f"{folder} is not a directory")
            elif (meta := read_meta_properties(OsFiles(), folder)) is None:
                problems.append(f"{folder} is not formatted.")
            else:
                directory = "none" if meta.directory_id is None else uuid_to_text(meta.directory_id)
                print(f"{folder}: cluster.id={meta.cluster_id} node.id={meta.node_id} directory.id={directory}")
        except (KasparError, OSError) as problem:
            problems.append(f"{folder} cannot be read: {problem}")
    if problems:
        print("\nFound problem:" if len(problems) == 1 else "\nFound problems:")
        for sentence in problems:
            print(f"  {sentence}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
