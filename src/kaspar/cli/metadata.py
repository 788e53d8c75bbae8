"""`kaspar metadata`: shows a broker's embedded metadata, moves it to ZooKeeper, or imports an Apache Kafka folder."""

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
  kaspar metadata adopt server.properties --dry-run   with the server.properties of a stopped Apache Kafka node

exit codes: 0 on success, 1 if refused or interrupted; an interrupted run continues when run again
"""


@click.group("metadata", cls=Group, epilog=_EXAMPLES)
def command() -> None:
    """Show the metadata that a single broker stores in a file; move it to ZooKeeper, so that the broker becomes the
    first of a cluster; or adopt the data directory of an Apache Kafka node. The broker must be stopped."""


_FILE: Final = click.argument("file", type=click.Path(path_type=Path))


@command.command("show", epilog="Example: kaspar metadata show server.properties")
@_FILE
def show(file: Path) -> None:
    """Show the contents of the embedded store. FILE is the broker's properties file."""

    async def run() -> None:
        async with _embedded(_config_of(file)) as source:
            await _show(source)

    _complete(run())


@command.command("move", epilog=_EXAMPLES)
@_FILE
@click.option(
    "--zookeeper",
    metavar="HOST:PORT[/CHROOT]",
    help="The target, in the form of zookeeper.connect (default: zookeeper.connect in FILE).",
)
@click.option("--dry-run", is_flag=True, help="Check everything without changing anything.")
@click.option("--undo", is_flag=True, help="Revert a move, if no broker has used the copy yet.")
def move(file: Path, zookeeper: str | None, dry_run: bool, undo: bool) -> None:
    """Copy all metadata to an empty path of ZooKeeper, verify it, and mark the embedded store as moved. Records stay in
    place. The broker must be stopped. FILE is its properties file."""
    if dry_run and undo:
        raise click.UsageError("--dry-run cannot be combined with --undo")
    config = _config_of(file)

    async def run() -> None:
        async with _embedded(config) as source:
            if undo:
                if zookeeper is not None:
                    raise KasparError("--undo takes no --zookeeper: the embedded store records where it was moved to")
                await _undo(source, config)
            else:
                await _move(source, zookeeper or config.zookeeper_connect, config, file, dry_run=dry_run)

    _complete(run())


@command.command("adopt", epilog=ADOPT_EXAMPLES)
@_FILE
@click.option("--dry-run", is_flag=True, help="Check and list everything without changing anything.")
@click.option("--yes", is_flag=True, help="Adopt even if something cannot be imported.")
@click.option("--undo", is_flag=True, help="Restore the folder for Kafka, if no broker has used it yet.")
def adopt(file: Path, dry_run: bool, yes: bool, undo: bool) -> None:
    """Adopt, in place, the log directories of a stopped Apache Kafka 4 node that is both broker and sole controller
    (KRaft). FILE is its properties file. If something cannot be imported, it is listed, and nothing is changed without
    --yes. No record is copied or changed."""
    if dry_run + yes + undo > 1:
        raise click.UsageError("only one of --dry-run, --yes and --undo can be given")
    _complete(run_adopt(AdoptOptions(file, dry_run, yes, undo), _config_of(file)))


def _complete(work: Coroutine[None, None, None]) -> None:
    from kaspar.metadata.store import SessionLost, UnknownOutcome

    try:
        asyncio.run(work)
    except (SessionLost, UnknownOutcome) as problem:
        raise KasparError(f"{problem}: run the command again to continue") from None


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
        print(f"It was moved to ZooKeeper at {mark.connect}, and has not changed since.")
    if await source.connect().get(store_paths.ADOPTED) is not None:
        print("It was adopted from Apache Kafka.")


async def _move(
    source: "SqliteMetadata", connect: str | None, config: "BrokerConfig", file: Path, *, dry_run: bool
) -> None:
    from kaspar.metadata.moving import move, plan_move
    from kaspar.metadata.zookeeper import ZooKeeperMetadata
    from kaspar.security.zookeeper import zookeeper_security

    if connect is None:
        raise KasparError("--zookeeper is required: the target of the move")
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
                print(f"Moved to ZooKeeper and verified: {_summary(plan.image)}.")
        if plan.is_done:
            print(f"The metadata in {source.path} was already moved.")
    finally:
        await ensemble.close()
    if not dry_run:
        print(f"Add this to {file} before starting the broker:\n\n    zookeeper.connect={connect}\n")


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
    print(f"The metadata of cluster {cluster_id} is in {source.path} again; the copy was removed.")
    print("Remove zookeeper.connect from the properties file before starting the broker.")


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
