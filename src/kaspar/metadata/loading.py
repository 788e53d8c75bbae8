"""Reads the image from the store, and prepares a new store.

The image is spread over many nodes, which may change while they are read. Every transaction of a controller writes the
fence (controller/fence.py), so the nodes are consistent if the fence has the same version before and after. Otherwise
they are read again.
"""

import contextlib
from collections.abc import Mapping, Sequence
from typing import Final

from kaspar.acls.acl import Acl
from kaspar.base.errors import KasparError
from kaspar.base.ids import BrokerId, random_uuid, uuid_to_text
from kaspar.metadata.features import FIRST_LEVELS, NEW_LEVELS
from kaspar.metadata.image import BrokerRegistration, ClusterImage, Configs, DeletedTopic, TopicImage
from kaspar.metadata.layout import (
    acl_nodes,
    broker_nodes,
    credential_nodes,
    first_nodes,
    json_values,
    quota_nodes,
    store_paths,
    topic_nodes,
)
from kaspar.metadata.store import Create, DamagedStore, Node, Store, UnknownOutcome, VersionConflict, Watcher
from kaspar.quotas.entities import Limits, QuotaEntity
from kaspar.security.delegation_tokens import DelegationToken
from kaspar.security.scram import ScramCredential

_MAX_ATTEMPTS: Final = 10
MIN_INSYNC_REPLICAS: Final = "min.insync.replicas"


class StoreIncomplete(KasparError):
    """A move into the store (metadata/moving.py) is not finished."""


async def prepare_store(
    store: Store,
    cluster_id: str | None = None,
    *,
    min_insync_replicas: int = 1,
    levels: Mapping[str, int] = NEW_LEVELS,
) -> None:
    """Create the first nodes of a new store, and the cluster's id. A new cluster gets `min_insync_replicas` as a
    setting and the feature `levels`. Existing nodes are not changed; a store of an earlier release gets the missing
    ones. Raises StoreIncomplete while metadata is being moved into the store.
    """
    await _refuse_incomplete(store)
    with contextlib.suppress(VersionConflict):  # another broker was first
        if await store.get(store_paths.CLUSTER_ID) is None:
            cluster = cluster_id or uuid_to_text(random_uuid())
            await store.transact(
                [
                    *first_nodes.bootstrap_nodes(),
                    first_nodes.first_features(levels),
                    first_nodes.first_configs({MIN_INSYNC_REPLICAS: str(min_insync_replicas)}),
                    Create(store_paths.CLUSTER_ID, cluster.encode()),
                ]
            )
    # A move creates /moving together with its first nodes. So a broker whose transaction above failed because of a
    # move, or that sees the nodes of one, sees /moving here.
    await _refuse_incomplete(store)
    with contextlib.suppress(VersionConflict):
        if await store.get(store_paths.FEATURES) is None:
            await store.transact([first_nodes.first_features(FIRST_LEVELS)])
    there = await store.get_many(store_paths.LATER_FOLDERS)
    for path, node in zip(store_paths.LATER_FOLDERS, there, strict=True):
        if node is None:
            with contextlib.suppress(VersionConflict):
                await store.transact([Create(path)])


async def _refuse_incomplete(store: Store) -> None:
    moving = await store.get(store_paths.MOVING)
    if moving is not None:
        raise StoreIncomplete(
            f"the metadata of the cluster {moving.value.decode()} is being moved here, and not all of it is here yet: "
            "wait until 'kaspar metadata move' is done, or, if it was interrupted, run it again"
        )


async def load_image(store: Store) -> ClusterImage:
    """A consistent image, without the brokers that are up. Raises UnknownOutcome if the store changes faster than it
    can be read, and DamagedStore if nodes are missing although nothing changes.
    """
    for _ in range(_MAX_ATTEMPTS):
        fence = await _node(store, store_paths.FENCE)
        damage: DamagedStore | None = None
        try:
            image = await _load_once(store, fence)
        except DamagedStore as problem:
            damage = problem
        if (await _node(store, store_paths.FENCE)).version == fence.version:
            if damage is not None:
                raise damage
            return image
    raise UnknownOutcome("the metadata store changed each time it was read")


async def _load_once(store: Store, fence: Node) -> ClusterImage:
    singles = (store_paths.CLUSTER_ID, store_paths.BROKER_EPOCHS, store_paths.FEATURES, store_paths.PRODUCER_IDS)
    cluster_id, epochs, features, next_producer_id = await _values(store, singles)
    controller, levels = json_values.decode(fence.value), json_values.decode(features)
    broker_epochs, incarnations = broker_nodes.decode_epochs(epochs)
    topics = {topic.name: topic for topic in await _load_topics(store)}
    return ClusterImage(
        cluster_id=cluster_id.decode(),
        controller_id=BrokerId(controller["controller"]),
        controller_epoch=controller["epoch"],
        broker_epochs=broker_epochs,
        broker_incarnations=incarnations,
        topics=topics,
        topic_names={topic.topic_id: name for name, topic in topics.items()},
        deleted_topics={topic.topic_id: topic for topic in await _load_deleted(store)},
        broker_configs=await _load_configs(store, store_paths.BROKER_CONFIGS),
        group_configs=await _load_configs(store, store_paths.GROUP_CONFIGS),
        client_metrics_configs=await _load_configs(store, store_paths.CLIENT_METRICS_CONFIGS),
        next_producer_id=json_values.decode(next_producer_id),
        features=levels["levels"],
        features_epoch=levels["epoch"],
        acls=await _load_acls(store),
        scram_credentials=await _load_scram(store),
        delegation_tokens=await _load_tokens(store),
        client_quotas=await _load_quotas(store),
    )


async def load_brokers(store: Store, watcher: Watcher | None = None) -> dict[BrokerId, BrokerRegistration]:
    """The brokers that are up. The watcher is called when one registers or its session ends."""
    names = await store.children(store_paths.BROKER_IDS, watcher)
    nodes = await store.get_many([f"{store_paths.BROKER_IDS}/{name}" for name in names])
    found = {
        broker_nodes.registered_as(name): node for name, node in zip(names, nodes, strict=True) if node is not None
    }
    # A broker that was restarted before its earlier session ended has two nodes. The later incarnation replaces the
    # earlier one, because they are sorted.
    return {
        broker: broker_nodes.decode_registration(broker, incarnation, node.created, node.value)
        for (broker, incarnation), node in sorted(found.items(), key=lambda each: each[0])
    }


async def _load_topics(store: Store) -> list[TopicImage]:
    names = await store.children(store_paths.TOPICS)
    headers = await _values(store, [topic_nodes.topic_path(name) for name in names])
    topics = []
    for name, header in zip(names, headers, strict=True):
        nodes = [header]
        if (count := topic_nodes.node_count(header)) > 1:
            nodes += await _values(store, topic_nodes.further_paths(name, count))
        topics.append(topic_nodes.decode_topic(name, nodes))
    return topics


async def _load_deleted(store: Store) -> list[DeletedTopic]:
    names = await store.children(store_paths.DELETED)
    values = await _values(store, [f"{store_paths.DELETED}/{name}" for name in names])
    return [topic_nodes.decode_deleted(name, value) for name, value in zip(names, values, strict=True)]


async def _load_configs(store: Store, folder: str) -> dict[str, Configs]:
    names = await store.children(folder)
    values = await _values(store, [f"{folder}/{name}" for name in names])
    return {
        store_paths.resource_name(name): json_values.decode(value) for name, value in zip(names, values, strict=True)
    }


async def _load_acls(store: Store) -> dict[str, Acl]:
    names = await store.children(store_paths.ACLS)
    acls: dict[str, Acl] = {}
    for value in await _values(store, [f"{store_paths.ACLS}/{name}" for name in names]):
        acls |= acl_nodes.decode_acls(value)
    return acls


async def _load_scram(store: Store) -> dict[str, dict[str, ScramCredential]]:
    names = await store.children(store_paths.SCRAM)
    values = await _values(store, [f"{store_paths.SCRAM}/{name}" for name in names])
    return {
        store_paths.resource_name(name): credential_nodes.decode_scram(value)
        for name, value in zip(names, values, strict=True)
    }


async def _load_tokens(store: Store) -> dict[str, DelegationToken]:
    names = await store.children(store_paths.TOKENS)
    values = await _values(store, [f"{store_paths.TOKENS}/{name}" for name in names])
    return {name: credential_nodes.decode_token(name, value) for name, value in zip(names, values, strict=True)}


async def _load_quotas(store: Store) -> dict[QuotaEntity, Limits]:
    names = await store.children(store_paths.CLIENT_QUOTAS)
    values = await _values(store, [f"{store_paths.CLIENT_QUOTAS}/{name}" for name in names])
    return {
        quota_nodes.quota_entity(name): json_values.decode(value) for name, value in zip(names, values, strict=True)
    }


async def _node(store: Store, path: str) -> Node:
    node = await store.get(path)
    if node is None:
        raise DamagedStore(f"the metadata store lacks {path}")
    return node


async def _values(store: Store, paths: Sequence[str]) -> list[bytes]:
    values = []
    for path, node in zip(paths, await store.get_many(paths), strict=True):
        if node is None:
            raise DamagedStore(f"the metadata store lacks {path}")
        values.append(node.value)
    return values
