"""`kaspar metadata`: shows what a broker keeps in its file, moves it to ZooKeeper, or takes over a folder of Kafka."""

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kaspar.base.errors import KasparError
from kaspar.base.sentences import counted
from kaspar.cli.adopt import EXAMPLES as ADOPT_EXAMPLES
from kaspar.cli.adopt import AdoptOptions, run_adopt
from kaspar.cli.command import Group

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


@click.group("metadata", cls=Group, epilog=_EXAMPLES)
def command() -> None:
    """Show the metadata that a single broker keeps in a file; move it to ZooKeeper, so that the broker becomes the
    first of a cluster; or take over the folder of an Apache Kafka node. The broker must be stopped."""


_FILE: Final = click.argument("file", type=click.Path(path_type=Path))


@command.command("show", epilog="Example: kaspar metadata show server.properties")
@_FILE
def show(file: Path) -> None:
    """Show what is in the embedded store. FILE is the broker's properties file."""

    async def run() -> None:
        async with _embedded(_config_of(file)) as source:
            await _show(source)

    _complete(run())


@command.command("move", epilog=_EXAMPLES)
@_FILE
@click.option(
    "--zookeeper",
    metavar="HOST:PORT[/CHROOT]",
    help="Where to, as in zookeeper.connect (default: zookeeper.connect of FILE).",
)
@click.option("--dry-run", is_flag=True, help="Check everything, and change nothing.")
@click.option("--undo", is_flag=True, help="Take a move back, if no broker has used the copy.")
def move(file: Path, zookeeper: str | None, dry_run: bool, undo: bool) -> None:
    """Copy everything into an empty path of ZooKeeper, compare it, and mark the embedded store as moved. Records stay
    where they are. The broker must be stopped. FILE is its properties file."""
    if dry_run and undo:
        raise click.UsageError("--dry-run is not for --undo")
    config = _config_of(file)

    async def run() -> None:
        async with _embedded(config) as source:
            if undo:
                if zookeeper is not None:
                    raise KasparError("--undo needs no --zookeeper: the embedded store knows where it was moved to")
                await _undo(source, config)
            else:
                await _move(source, zookeeper or config.zookeeper_connect, config, file, dry_run=dry_run)

    _complete(run())


@command.command("adopt", epilog=ADOPT_EXAMPLES)
@_FILE
@click.option("--dry-run", is_flag=True, help="Check and list everything, and change nothing.")
@click.option("--yes", is_flag=True, help="Adopt even if something is not taken over.")
@click.option("--undo", is_flag=True, help="Give the folder back to Kafka, if no broker has used it.")
def adopt(file: Path, dry_run: bool, yes: bool, undo: bool) -> None:
    """Take over, in place, the log directories of an Apache Kafka 4 node that is broker and sole controller (KRaft) and
    is stopped. FILE is its properties file. What cannot be taken over is listed, and then nothing is changed without
    --yes. No record is copied or changed."""
    if dry_run + yes + undo > 1:
        raise click.UsageError("only one of --dry-run, --yes and --undo can be given")
    _complete(run_adopt(AdoptOptions(file, dry_run, yes, undo), _config_of(file)))


def _complete(work: Coroutine[None, None, None]) -> None:
    from kaspar.metadata.store import SessionLost, UnknownOutcome

    try:
        asyncio.run(work)
    except (SessionLost, UnknownOutcome) as problem:
        raise KasparError(f"{problem}: run the command again, it continues where it was") from None


def _config_of(file: Path) -> "BrokerConfig":
    from kaspar.config import BrokerConfig, load_settings

    return BrokerConfig.of(load_settings(file))


@contextlib.asynccontextmanager
async def _embedded(config: "BrokerConfig") -> "AsyncIterator[SqliteMetadata]":
    source = await _open_embedded(config)
    try:
        yield source
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
    from kaspar.metadata.layout import store_paths
    from kaspar.metadata.loading import load_image

    mark = await source.moved_mark()
    print(f"{source.path}: {_summary(await load_image(source.connect()))}.")
    if mark is not None:
        print(f"It was moved to ZooKeeper at {mark.connect}, and is as it was then.")
    if await source.connect().get(store_paths.ADOPTED) is not None:
        print("It was adopted from Apache Kafka.")


async def _move(
    source: "SqliteMetadata", connect: str | None, config: "BrokerConfig", file: Path, *, dry_run: bool
) -> None:
    from kaspar.metadata.moving import move, plan_move
    from kaspar.metadata.zookeeper import ZooKeeperMetadata
    from kaspar.security.zookeeper import zookeeper_security

    if connect is None:
        raise KasparError("--zookeeper says where the metadata is to be moved to")
    security = zookeeper_security(config, os.environ)
    ensemble = await ZooKeeperMetadata.open(connect, create=not dry_run, security=security)
    connect = str(ensemble.address)
    try:
        if dry_run:
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
    if not dry_run:
        print(f"Put this into {file} before the broker is started:\n\n    zookeeper.connect={connect}\n")


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
