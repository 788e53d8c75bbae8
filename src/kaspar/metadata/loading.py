"""Reads the image from the store, and makes a new store ready."""

import contextlib
from collections.abc import Sequence

from kaspar.base.ids import BrokerId, random_uuid, uuid_to_text
from kaspar.metadata import layout
from kaspar.metadata.features import FIRST_LEVELS
from kaspar.metadata.image import BrokerRegistration, ClusterImage, Configs, DeletedTopic, TopicImage
from kaspar.metadata.store import Create, Node, Store, VersionConflict, Watcher


async def prepare_store(store: Store, cluster_id: str | None = None) -> None:
    """Gives a new store its first nodes and the cluster its id. What is there is left as it is; a store of an earlier
    release gets what it lacks.
    """
    with contextlib.suppress(VersionConflict):  # another broker was first
        if await store.get(layout.CLUSTER_ID) is None:
            cluster = cluster_id or uuid_to_text(random_uuid())
            await store.transact([*layout.bootstrap_nodes(), Create(layout.CLUSTER_ID, cluster.encode())])
    with contextlib.suppress(VersionConflict):
        if await store.get(layout.FEATURES) is None:
            await store.transact([layout.first_features(FIRST_LEVELS)])
    with contextlib.suppress(VersionConflict):
        if await store.get(layout.BROKER_DIRECTORIES) is None:
            await store.transact([Create(layout.BROKER_DIRECTORIES)])


async def load_image(store: Store) -> ClusterImage:
    """The whole image, without the brokers that are up."""
    cluster_id = await _value(store, layout.CLUSTER_ID)
    fence = layout.decode(await _value(store, layout.FENCE))
    epochs = layout.decode(await _value(store, layout.BROKER_EPOCHS))
    features = layout.decode(await _value(store, layout.FEATURES))
    topics = {topic.name: topic for topic in await _load_topics(store)}
    return ClusterImage(
        cluster_id=cluster_id.decode(),
        controller_id=BrokerId(fence["controller"]),
        controller_epoch=fence["epoch"],
        broker_epochs={BrokerId(int(broker)): epoch for broker, epoch in epochs.items()},
        topics=topics,
        topic_names={topic.topic_id: name for name, topic in topics.items()},
        deleted_topics={topic.topic_id: topic for topic in await _load_deleted(store)},
        broker_configs=await _load_configs(store, layout.BROKER_CONFIGS),
        group_configs=await _load_configs(store, layout.GROUP_CONFIGS),
        client_metrics_configs=await _load_configs(store, layout.CLIENT_METRICS_CONFIGS),
        next_producer_id=layout.decode(await _value(store, layout.PRODUCER_IDS)),
        features=features["levels"],
        features_epoch=features["epoch"],
    )


async def load_brokers(store: Store, watcher: Watcher | None = None) -> dict[BrokerId, BrokerRegistration]:
    """The brokers that are up. The watcher is called when one comes or goes."""
    names = await store.children(layout.BROKER_IDS, watcher)
    nodes = await store.get_many([f"{layout.BROKER_IDS}/{name}" for name in names])
    found = ((BrokerId(int(name)), node) for name, node in zip(names, nodes, strict=True) if node is not None)
    return {broker: layout.decode_registration(broker, node.created, node.value) for broker, node in found}


async def _load_topics(store: Store) -> list[TopicImage]:
    names = await store.children(layout.TOPICS)
    headers = _present(await store.get_many([layout.topic_path(name) for name in names]))
    topics = []
    for name, header in zip(names, headers, strict=True):
        nodes = [header]
        if (count := layout.node_count(header.value)) > 1:
            nodes += _present(await store.get_many(layout.further_paths(name, count)))
        topics.append(layout.decode_topic(name, [node.value for node in nodes]))
    return topics


async def _load_deleted(store: Store) -> list[DeletedTopic]:
    names = await store.children(layout.DELETED)
    nodes = _present(await store.get_many([f"{layout.DELETED}/{name}" for name in names]))
    return [layout.decode_deleted(name, node.value) for name, node in zip(names, nodes, strict=True)]


async def _load_configs(store: Store, folder: str) -> dict[str, Configs]:
    names = await store.children(folder)
    nodes = _present(await store.get_many([f"{folder}/{name}" for name in names]))
    return {layout.resource_name(name): layout.decode(node.value) for name, node in zip(names, nodes, strict=True)}


async def _value(store: Store, path: str) -> bytes:
    (node,) = _present([await store.get(path)])
    return node.value


def _present(nodes: Sequence[Node | None]) -> list[Node]:
    """The controller alone deletes these nodes, and it is the one who reads: so all of them are there."""
    present = [node for node in nodes if node is not None]
    assert len(present) == len(nodes), "nodes of the metadata store went away while they were read"
    return present
