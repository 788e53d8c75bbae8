"""Moves the metadata of a broker from its embedded store to ZooKeeper, so that it becomes the first broker of a
cluster.

At every moment brokers can use at most one of the two stores, and an interrupted move can be continued:

1. The first transaction creates `/moving` together with the first nodes. While it exists, no broker starts there. All
   later transactions check it. Only the difference between both stores is copied, so it does not matter how much an
   earlier attempt has copied, or whether the broker has run in between. The cluster's id is copied last.
2. Everything is read back and compared, node by node and as an image.
3. The embedded store is marked as moved: from now on no broker opens it.
4. `/moving` is deleted.

Undoing runs the steps backwards, unless a controller has written the fence. First `/moving` is created, and the fence
and the cluster's id are deleted, so that a broker that is just starting cannot continue. Then the other nodes, the mark
on the embedded store and finally `/moving` are deleted.

Versions and transaction numbers belong to a store and cannot be copied. The remembered epochs and incarnations of
brokers are such numbers. The last epoch becomes 0, which no registration has: a copied epoch that happened to equal
that of a new registration would hide a crash. Incarnations are versions, and start again at 1. The last incarnation
that a controller has seen becomes 0, or less if there were later ones, so that a start that no controller has seen
still counts as a crash.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeAlias

from kaspar.base.errors import KasparError
from kaspar.metadata.directories import refuse_unadopted
from kaspar.metadata.image import CLUSTER_DEFAULT, ClusterImage
from kaspar.metadata.layout import broker_nodes, store_paths
from kaspar.metadata.loading import MIN_INSYNC_REPLICAS, load_image, prepare_store
from kaspar.metadata.moved_mark import MovedMark
from kaspar.metadata.nodes import Nodes, changes_between, in_transactions, read_nodes, top_names
from kaspar.metadata.sqlite import FILE_NAME, SqliteMetadata
from kaspar.metadata.store import Check, Create, Delete, Operation, Put, Store, VersionConflict

Progress: TypeAlias = Callable[[int, int], None]
"""Called with the number of nodes copied so far, and the total."""

_NO_EPOCH: Final = 0


class MoveRefused(KasparError):
    """The move or its reversal is not possible. Nothing was changed."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What has to be moved. `is_done`: nothing, because it was moved before. `has_begun`: an earlier attempt has copied
    a part of it.
    """

    cluster_id: str
    image: ClusterImage
    changes: tuple[Operation, ...]
    nodes: Nodes
    has_begun: bool
    is_done: bool


async def plan_move(source: SqliteMetadata, target: Store, connect: str) -> Plan:
    """Read both stores and compare them. Raises MoveRefused if the target contains anything else."""
    store = source.connect()
    cluster_id = await _cluster_id(store)
    if cluster_id is None:
        raise MoveRefused(
            f"{source.path} has no cluster yet: set zookeeper.connect={connect} in the broker's properties file, there "
            "is nothing to move"
        )
    await prepare_store(store)
    mark = await source.moved_mark()
    if mark is not None and mark.connect != connect:
        raise MoveRefused(f"the metadata in {source.path} was moved to {mark.connect} before, not to {connect}")
    has_begun, is_done = await _state_of(target, cluster_id, connect, is_marked=mark is not None)
    nodes = await _copy_of(await read_nodes(store), store)
    epochs, incarnations = broker_nodes.decode_epochs(nodes[store_paths.BROKER_EPOCHS])
    image = replace(await load_image(store), broker_epochs=epochs, broker_incarnations=incarnations)
    changes = [] if is_done else changes_between(nodes, await read_nodes(target))
    return Plan(cluster_id, image, tuple(changes), nodes, has_begun, is_done)


async def move(source: SqliteMetadata, target: Store, connect: str, progress: Progress = lambda *_: None) -> Plan:
    """Move everything, or continue an interrupted move. Returns the plan that was carried out."""
    plan = await plan_move(source, target, connect)
    if plan.is_done:
        return plan
    await _carry_out(plan, target, progress)
    fence_version = await _verified(plan, target)
    await source.mark_moved(MovedMark(connect, fence_version))
    await target.transact([Check(store_paths.FENCE, fence_version), Delete(store_paths.MOVING)])
    return plan


async def undo_move(source: SqliteMetadata, target: Store) -> str:
    """Make the embedded store usable again, and remove the copy. Returns the cluster's id. Raises MoveRefused if the
    copy has been changed since the move.
    """
    mark = await source.moved_mark()
    cluster_id = await _cluster_id(source.connect())
    if mark is None or cluster_id is None:
        raise MoveRefused(f"the metadata in {source.path} has not been moved")
    moving = await target.get(store_paths.MOVING)
    if moving is None:
        await _withdraw(target, mark, cluster_id)
    elif moving.value.decode() != cluster_id:
        raise MoveRefused(_another_cluster(mark.connect, moving.value.decode(), cluster_id))
    guard = Check(store_paths.MOVING, 0)
    for transaction in in_transactions(changes_between({}, await read_nodes(target)), guard):
        await target.transact([guard, *transaction])
    await source.unmark_moved()
    await target.transact([Delete(store_paths.MOVING)])
    return cluster_id


async def refuse_unmoved(store: Store, folders: Collection[str], *, cluster_id: str | None, connect: str) -> None:
    """Check that a broker may start on ZooKeeper; its log directories belong to the cluster `cluster_id`. Raises
    MoveRefused if an embedded store in one of the folders has topics or settings of a cluster that ZooKeeper does not
    have. Raises KasparError if one of the folders has Kafka's metadata.
    """
    known = await _cluster_id(store)
    if known is not None and known == cluster_id:
        return
    embedded = [Path(folder) for folder in folders if (Path(folder) / FILE_NAME).exists()]
    if not embedded:
        refuse_unadopted(folders)
    for folder in embedded:
        await _refuse_unmoved(folder, known, connect)


async def _refuse_unmoved(folder: Path, known: str | None, connect: str) -> None:
    embedded = await SqliteMetadata.open(folder, even_if_moved=True)
    try:
        store = embedded.connect()
        cluster_id = await _cluster_id(store)
        if cluster_id == known or not await _is_in_use(store):
            return
        mark = await embedded.moved_mark()
    finally:
        await embedded.close()
    found = "ZooKeeper there has no cluster" if known is None else f"ZooKeeper there has the cluster {known}"
    if mark is not None:
        raise MoveRefused(
            f"the metadata of the cluster {cluster_id} was moved to {mark.connect}, and zookeeper.connect is "
            f"{connect}: {found}"
        )
    raise MoveRefused(
        f"{embedded.path} has the metadata of the cluster {cluster_id}, and zookeeper.connect is {connect}: {found}. "
        f"Move it with 'kaspar metadata move FILE --zookeeper {connect}', where FILE is the broker's properties file"
        + ("" if known is None else ", to a path of its own")
    )


async def _is_in_use(store: Store) -> bool:
    """Whether the store has topics, settings or anything else that a new cluster does not have."""
    image = await load_image(store)
    own = {name for name in image.cluster_broker_config if name != MIN_INSYNC_REPLICAS}
    of_brokers = any(configs for name, configs in image.broker_configs.items() if name != CLUSTER_DEFAULT)
    security = image.acls or image.scram_credentials or image.delegation_tokens or image.client_quotas
    others = image.deleted_topics or image.group_configs or image.client_metrics_configs
    return bool(image.topics or others or security or own or of_brokers)


async def _state_of(target: Store, cluster_id: str, connect: str, *, is_marked: bool) -> tuple[bool, bool]:
    """Whether a move into the target has begun, and whether it is done."""
    moving = await target.get(store_paths.MOVING)
    known = await _cluster_id(target)
    if moving is not None:
        if moving.value.decode() != cluster_id:
            raise MoveRefused(_another_cluster(connect, moving.value.decode(), cluster_id))
        return True, False
    if known is not None and known != cluster_id:
        raise MoveRefused(_another_cluster(connect, known, cluster_id))
    if known is not None and not is_marked:
        raise MoveRefused(
            f"ZooKeeper at {connect} already has the cluster {cluster_id}, and not by a move from this store"
        )
    if known is None and is_marked:
        raise MoveRefused(f"the metadata was moved to {connect} before, and ZooKeeper has lost it")
    if known is None and (others := await top_names(target)):
        raise MoveRefused(
            f"ZooKeeper at {connect} has something else ({', '.join(others)}): move to an empty path, such as "
            f"{connect.partition('/')[0]}/kaspar"
        )
    return False, known is not None


def _another_cluster(connect: str, found: str, cluster_id: str) -> str:
    return (
        f"ZooKeeper at {connect} has the cluster {found}, and the metadata to be moved is of the cluster {cluster_id}: "
        "move it to an empty path"
    )


async def _carry_out(plan: Plan, target: Store, progress: Progress) -> None:
    first: Operation = Create(store_paths.MOVING, plan.cluster_id.encode())
    guard: Operation = Check(store_paths.MOVING, 0) if plan.has_begun else first
    done, total = 0, len(plan.changes)
    for transaction in in_transactions(plan.changes, first):
        try:
            await target.transact([guard, *transaction])
        except VersionConflict as conflict:
            raise KasparError(f"ZooKeeper was changed by others during the move: {conflict}") from None
        guard = Check(store_paths.MOVING, 0)
        done += len(transaction)
        progress(done, total)


async def _verified(plan: Plan, target: Store) -> int:
    """Check that the target is as planned. Returns the version of its fence."""
    found = await read_nodes(target)
    wrong = sorted(path for path in plan.nodes.keys() | found.keys() if plan.nodes.get(path) != found.get(path))
    fence = await target.get(store_paths.FENCE)
    if wrong or fence is None or await load_image(target) != plan.image:
        raise KasparError(
            f"what was written to ZooKeeper reads differently ({', '.join(wrong[:5])}): nothing was changed in the "
            "embedded store"
        )
    return fence.version


async def _withdraw(target: Store, mark: MovedMark, cluster_id: str) -> None:
    """Make the copy unusable. Raises MoveRefused if a broker has used it."""
    known = await _cluster_id(target)
    if known is None:
        raise MoveRefused(f"ZooKeeper at {mark.connect} has no cluster, so nothing shows whether the copy was used")
    if known != cluster_id:
        raise MoveRefused(_another_cluster(mark.connect, known, cluster_id))
    if brokers := await target.children(store_paths.BROKER_IDS):
        numbers = ", ".join(str(broker_nodes.registered_as(name)[0]) for name in brokers)
        raise MoveRefused(f"the move cannot be undone while brokers are registered at {mark.connect}: {numbers}")
    try:
        await target.transact(
            [
                Create(store_paths.MOVING, cluster_id.encode()),
                Delete(store_paths.FENCE, mark.fence_version),
                Delete(store_paths.CLUSTER_ID),
            ]
        )
    except VersionConflict:
        raise MoveRefused(
            f"the move cannot be undone: a controller has used the metadata at {mark.connect} since, and its changes "
            "would be lost"
        ) from None


async def _cluster_id(store: Store) -> str | None:
    node = await store.get(store_paths.CLUSTER_ID)
    return None if node is None else node.value.decode()


async def _copy_of(nodes: Nodes, store: Store) -> Nodes:
    """The nodes with epochs and incarnations adapted for another store, in which the counters start again."""
    epochs, incarnations = broker_nodes.decode_epochs(nodes[store_paths.BROKER_EPOCHS])
    paths = {broker_id: broker_nodes.incarnations_path(broker_id) for broker_id in incarnations}
    counters = await store.get_many(list(paths.values()))
    last_seen, copied = {}, dict(nodes)
    for (broker_id, seen), counter in zip(incarnations.items(), counters, strict=True):
        last_seen[broker_id] = seen - (seen if counter is None else counter.version)
        if counter is not None:
            copied[paths[broker_id]] = b"%d" % (broker_nodes.last_crash(counter) - counter.version)
    (change,) = broker_nodes.epochs_change(dict.fromkeys(epochs, _NO_EPOCH), last_seen)
    assert isinstance(change, Put)
    return {**copied, store_paths.BROKER_EPOCHS: change.value}
