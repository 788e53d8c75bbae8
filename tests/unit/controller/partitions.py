"""One partition of three replicas, t-0, and what the controller makes of it."""

from dataclasses import replace
from typing import Any

from kaspar.base.ids import BrokerId, LeaderEpoch
from kaspar.controller.events import (
    AlterPartitions,
    BrokersSeen,
    ControllerEvent,
    CreateTopics,
    FenceBrokers,
    IsrChange,
    IsrOutcome,
    NewTopic,
)
from kaspar.metadata.image import (
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    BrokerRegistration,
    ClusterImage,
    PartitionImage,
)
from tests.unit.controller.clusters import after, broker, cluster, controller

ONE, TWO, THREE, FOUR = map(BrokerId, (1, 2, 3, 4))


def of_three(*, elr: bool = False, brokers: int = 4, **configs: str) -> ClusterImage:
    """t-0 on brokers 1, 2 and 3, all in sync, 1 leads. With `elr` the cluster tracks eligible leader replicas."""
    image = cluster(*(broker(number) for number in range(1, brokers + 1)))
    if elr:
        image = replace(image, features={ELIGIBLE_LEADER_REPLICAS_VERSION: 1})
    settings = tuple((name.replace("_", "."), value) for name, value in configs.items())
    return decided(image, CreateTopics((NewTopic("t", assignments=((0, (1, 2, 3)),), configs=settings),)))


def partition(image: ClusterImage) -> PartitionImage:
    return image.topics["t"].partitions[0]


def with_partition(image: ClusterImage, **fields: Any) -> ClusterImage:
    topic = image.topics["t"]
    return image.with_topics({"t": replace(topic, partitions=(topic.partitions[0]._replace(**fields),))})


def decided(image: ClusterImage, event: ControllerEvent[Any]) -> ClusterImage:
    return after(controller().decide(image, event), image)


def seen(image: ClusterImage, *brokers: BrokerRegistration) -> ClusterImage:
    return decided(image, BrokersSeen({each.broker_id: each for each in brokers}))


def fenced(image: ClusterImage, *broker_ids: int) -> ClusterImage:
    pairs = tuple((BrokerId(each), image.brokers[BrokerId(each)].epoch) for each in broker_ids)
    return decided(image, FenceBrokers(pairs))


def back(image: ClusterImage, *brokers: BrokerRegistration) -> ClusterImage:
    """These brokers register, beside those that are up."""
    return decided(image, BrokersSeen({**image.brokers, **{each.broker_id: each for each in brokers}}))


def isr_change(image: ClusterImage, *isr: int, epochs: tuple[int, ...] = (), **fields: int) -> IsrChange:
    current = partition(image)
    return IsrChange(
        image.topics["t"].topic_id,
        fields.get("partition", 0),
        LeaderEpoch(fields.get("leader_epoch", current.leader_epoch)),
        fields.get("partition_epoch", current.partition_epoch),
        tuple(map(BrokerId, isr)),
        epochs,
    )


def altered(image: ClusterImage, *isr: int, epochs: tuple[int, ...] = ()) -> tuple[ClusterImage, IsrOutcome]:
    """The leader asks for these in-sync replicas."""
    leader = image.brokers[partition(image).leader]
    event = AlterPartitions(leader.broker_id, leader.epoch, (isr_change(image, *isr, epochs=epochs),))
    decision = controller().decide(image, event)
    return after(decision, image), decision.reply[0]
