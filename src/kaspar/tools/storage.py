"""kafka-storage: format log directories, and say what is in them.

A broker formats the directories of a new cluster by itself. This command is for what it must not decide: that an empty
directory is a new one, and no volume that is not mounted; that a directory which the cluster does not know may be used.
"""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from kaspar.base.errors import KasparError
from kaspar.base.ids import random_uuid, uuid_to_text


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="kafka-storage", description="Format log directories, or look at them.")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    info = commands.add_parser("info", help="say what is in the log directories")
    formatting = commands.add_parser(
        "format",
        help="make every directory of log.dirs one that the cluster knows",
        description="Make every directory of log.dirs one that the cluster knows. The broker must not be running.",
    )
    for command in (info, formatting):
        command.add_argument("-c", "--config", required=True, metavar="FILE", help="the broker's settings file")
    formatting.add_argument(
        "-t", "--cluster-id", metavar="ID", help="the id of a new cluster (default: a random one, see random-uuid)"
    )
    formatting.add_argument(
        "-g", "--ignore-formatted", action="store_true", help="leave directories as they are that are formatted already"
    )
    formatting.add_argument(
        "-s", "--standalone", action="store_true", help="accepted for Kafka's sake; there is no Raft quorum to set up"
    )
    commands.add_parser("random-uuid", help="print a new id for a cluster")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    arguments = _parser().parse_args(argv)
    if arguments.command == "random-uuid":
        print(uuid_to_text(random_uuid()))
        return 0
    # Imported here so that --help answers at once.
    from kaspar.config import BrokerConfig, load_settings
    from kaspar.storage import DirectoryInUse

    try:
        config = BrokerConfig.of(load_settings(Path(arguments.config)))
        if arguments.command == "info":
            return _info(config.log_dirs)
        from kaspar.tools.formatting import format_directories

        for sentence in asyncio.run(
            format_directories(config, arguments.cluster_id, ignore_formatted=arguments.ignore_formatted)
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
    """Without a lock, so that it also answers beside a running broker. 1 if something is wrong."""
    from kaspar.storage import OsFiles
    from kaspar.storage.folder_metadata import read_meta_properties

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
