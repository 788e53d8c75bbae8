"""Images and controllers for tests."""

import random
import uuid
from collections.abc import Iterator
from typing import Any

from kaspar.base.ids import BrokerId
from kaspar.config import BrokerSettings
from kaspar.controller.controller import Controller
from kaspar.controller.decision import Decision
from kaspar.controller.events import BrokersSeen, CreateTopics, NewTopic
from kaspar.controller.fence import vacate_seat
from kaspar.metadata.image import AdvertisedEndpoint, BrokerRegistration, ClusterImage
from kaspar.metadata.layout import store_paths
from kaspar.metadata.store import Store


def broker(
    broker_id: int,
    *,
    epoch: int = 1,
    rack: str | None = None,
    clean_start: bool = False,
    log_dirs: tuple[uuid.UUID, ...] = (),
) -> BrokerRegistration:
    endpoint = AdvertisedEndpoint("PLAINTEXT", f"host{broker_id}", 9092, "PLAINTEXT")
    return BrokerRegistration(BrokerId(broker_id), epoch, (endpoint,), rack, clean_start, log_dirs)


def controller(seed: int = 0, **static: str) -> Controller:
    rng = random.Random(seed)
    ids = _ids(rng)
    values = {"node.id": "1", **{name.replace("_", "."): value for name, value in static.items()}}
    return Controller(BrokerSettings.of(values), rng=rng, new_topic_id=lambda: next(ids))


def _ids(rng: random.Random) -> Iterator[uuid.UUID]:
    while True:
        yield uuid.UUID(int=rng.getrandbits(128))


def after(decision: Decision[Any], image: ClusterImage) -> ClusterImage:
    """The image once the decision is carried out."""
    return decision.steps[-1].image if decision.steps else image


def cluster(*brokers: BrokerRegistration) -> ClusterImage:
    image = ClusterImage("cluster")
    seen = {each.broker_id: each for each in brokers or (broker(1),)}
    return after(controller().decide(image, BrokersSeen(seen)), image)


def with_topic(image: ClusterImage, name: str, partitions: int = 1, factor: int = 1, **configs: str) -> ClusterImage:
    settings = tuple((key.replace("_", "."), value) for key, value in configs.items())
    decision = controller(len(image.topics) + 1000 * len(image.deleted_topics)).decide(
        image, CreateTopics((NewTopic(name, partitions, factor, configs=settings),))
    )
    assert decision.reply[0].outcome.message is None
    return after(decision, image)


async def vacated(store: Store) -> Store:
    """The store, once the controller has lost its seat, as if its process were known to be dead."""
    fence = await store.get(store_paths.FENCE)
    assert fence is not None
    await vacate_seat(store, fence.version)
    return store
