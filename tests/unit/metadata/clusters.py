"""Images and controllers for tests."""

import random
import uuid
from collections.abc import Iterator
from typing import Any

from kaspar.base.ids import BrokerId
from kaspar.config import BrokerSettings
from kaspar.metadata.controller import Controller
from kaspar.metadata.decision import Decision
from kaspar.metadata.events import BrokersSeen, CreateTopics, NewTopic
from kaspar.metadata.image import AdvertisedEndpoint, BrokerRegistration, ClusterImage


def broker(broker_id: int, *, epoch: int = 1, rack: str | None = None, clean_start: bool = False) -> BrokerRegistration:
    endpoint = AdvertisedEndpoint("PLAINTEXT", f"host{broker_id}", 9092, "PLAINTEXT")
    return BrokerRegistration(BrokerId(broker_id), epoch, (endpoint,), rack, clean_start)


def controller(seed: int = 0, **static: str) -> Controller:
    chance = random.Random(seed)
    ids = _ids(chance)
    values = {"node.id": "1", **{name.replace("_", "."): value for name, value in static.items()}}
    return Controller(BrokerSettings.of(values), chance=chance, new_topic_id=lambda: next(ids))


def _ids(chance: random.Random) -> Iterator[uuid.UUID]:
    while True:
        yield uuid.UUID(int=chance.getrandbits(128))


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
