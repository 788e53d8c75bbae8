"""`kaspar metadata`: shows what a broker keeps in its file, moves it to ZooKeeper, or takes over a folder of Kafka."""

import argparse
import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import KasparError
from kaspar.cli.adopt import add_adopt, counted, run_adopt

if TYPE_CHECKING:
    from kaspar.config import BrokerConfig
    from kaspar.metadata import ClusterImage, SqliteMetadata

_EXAMPLES: Final = """\
examples:
  kaspar metadata move server.properties --zookeeper zk1:2181,zk2:2181,zk3:2181/kaspar --dry-run
  kaspar metadata move server.properties --zookeeper zk1:2181,zk2:2181,zk3:2181/kaspar
  kaspar metadata move server.properties --undo       before a broker is started there
  kaspar metadata show server.properties
  kaspar metadata adopt server.properties --dry-run   where server.properties is of a stopped Apache Kafka

exit codes: 0 if all is done, 1 if it is refused or was interrupted; run it again, and it continues
"""


def add_metadata(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    metadata = commands.add_parser(
        "metadata",
        help="show a broker's embedded metadata, move it to ZooKeeper, or take over a folder of Apache Kafka",
        description="Show the metadata that a single broker keeps in a file; move it to ZooKeeper, so that the broker "
        "becomes the first of a cluster; or take over the folder of an Apache Kafka node. The broker must be stopped.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = metadata.add_subparsers(dest="action", metavar="ACTION", required=True)
    show = actions.add_parser("show", help="show what is in the embedded store")
    move = actions.add_parser(
        "move",
        help="move the metadata to ZooKeeper",
        description="Copy everything into an empty path of ZooKeeper, compare it, and mark the embedded store as "
        "moved. Records stay where they are. The broker must be stopped.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for action in (show, move, add_adopt(actions)):
        action.add_argument("file", type=Path, metavar="FILE", help="the broker's properties file")
    move.add_argument(
        "--zookeeper",
        metavar="HOST:PORT[/CHROOT]",
        help="where to, as in zookeeper.connect (default: zookeeper.connect of FILE)",
    )
    how = move.add_mutually_exclusive_group()
    how.add_argument("--dry-run", action="store_true", help="check everything, and change nothing")
    how.add_argument("--undo", action="store_true", help="take a move back, if no broker has used the copy")


def run_metadata(arguments: argparse.Namespace) -> int:
    from kaspar.config import BrokerConfig, load_settings
    from kaspar.metadata.store import SessionLost, UnknownOutcome

    try:
        config = BrokerConfig.of(load_settings(arguments.file))
        asyncio.run(_run(arguments, config))
    except (SessionLost, UnknownOutcome) as problem:
        print(f"kaspar: {problem}: run the command again, it continues where it was", file=sys.stderr)
        return 1
    except KasparError as problem:
        print(f"kaspar: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


async def _run(arguments: argparse.Namespace, config: "BrokerConfig") -> None:
    if arguments.action == "adopt":
        await run_adopt(arguments, config)
        return
    source = await _open_embedded(config)
    try:
        if arguments.action == "show":
            await _show(source)
        elif arguments.undo:
            if arguments.zookeeper is not None:
                raise KasparError("--undo needs no --zookeeper: the embedded store knows where it was moved to")
            await _undo(source, config)
        else:
            await _move(source, arguments.zookeeper or config.zookeeper_connect, arguments, config)
    finally:
        await source.close()


async def _open_embedded(config: "BrokerConfig") -> "SqliteMetadata":
    from kaspar.metadata import SqliteMetadata
    from kaspar.metadata.directories import store_folder
    from kaspar.metadata.sqlite import FILE_NAME

    folder = store_folder(config.metadata_log_dir, config.log_dirs, formatted=())
    if not (folder / FILE_NAME).exists():
        raise KasparError(f"there is no metadata store ({FILE_NAME}) in {folder}")
    return await SqliteMetadata.open(folder, even_if_moved=True)


async def _show(source: "SqliteMetadata") -> None:
    from kaspar.metadata import layout
    from kaspar.metadata.loading import load_image

    mark = await source.moved_mark()
    print(f"{source.path}: {_summary(await load_image(source.connect()))}.")
    if mark is not None:
        print(f"It was moved to ZooKeeper at {mark.connect}, and is as it was then.")
    if await source.connect().get(layout.ADOPTED) is not None:
        print("It was adopted from Apache Kafka.")


async def _move(
    source: "SqliteMetadata", connect: str | None, arguments: argparse.Namespace, config: "BrokerConfig"
) -> None:
    from kaspar.metadata.moving import move, plan_move
    from kaspar.metadata.zookeeper import ZooKeeperMetadata
    from kaspar.security.zookeeper import zookeeper_security

    if connect is None:
        raise KasparError("--zookeeper says where the metadata is to be moved to")
    security = zookeeper_security(config, os.environ)
    ensemble = await ZooKeeperMetadata.open(connect, create=not arguments.dry_run, security=security)
    connect = str(ensemble.address)
    try:
        if arguments.dry_run:
            plan = await plan_move(source, ensemble.connect(), connect)
            if not plan.is_done:
                continued = "The move continues" if plan.has_begun else "The move is possible"
                print(f"{continued}: {_summary(plan.image)}; {len(plan.changes)} nodes to write. Nothing was changed.")
        else:
            plan = await move(source, ensemble.connect(), connect, _report)
            if not plan.is_done:
                print(f"Moved to ZooKeeper and compared: {_summary(plan.image)}.")
        if plan.is_done:
            print(f"The metadata in {source.path} was moved before.")
    finally:
        await ensemble.close()
    if not arguments.dry_run:
        print(f"Put this into {arguments.file} before the broker is started:\n\n    zookeeper.connect={connect}\n")


async def _undo(source: "SqliteMetadata", config: "BrokerConfig") -> None:
    from kaspar.metadata.moving import MoveRefused, undo_move
    from kaspar.metadata.zookeeper import ZooKeeperMetadata
    from kaspar.security.zookeeper import zookeeper_security

    mark = await source.moved_mark()
    if mark is None:
        raise MoveRefused(f"the metadata in {source.path} has not been moved")
    security = zookeeper_security(config, os.environ)
    ensemble = await ZooKeeperMetadata.open(mark.connect, create=False, security=security)
    try:
        cluster_id = await undo_move(source, ensemble.connect())
    finally:
        await ensemble.close()
    print(f"The cluster {cluster_id} is in {source.path} again, and the copy is removed.")
    print("Remove zookeeper.connect from the properties file before the broker is started.")


def _report(done: int, total: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{done} of {total} nodes", end="" if done < total else "\n", file=sys.stderr, flush=True)


def _summary(image: "ClusterImage") -> str:
    partitions = sum(len(topic.partitions) for topic in image.topics.values())
    deleted = (
        f", {counted(len(image.deleted_topics), 'deleted topic')} whose logs remain" if image.deleted_topics else ""
    )
    topics = f"{counted(len(image.topics), 'topic')} with {counted(partitions, 'partition')}"
    return f"cluster {image.cluster_id}, {topics}{deleted}"
