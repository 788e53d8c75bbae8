"""Changes of topics and partitions between two images, for the state change log and the controller's metrics.

The log is Kafka's `state.change.logger`: leaders and in-sync replicas of partitions, topics that are created and
deleted. A broker without a folder for its logs (`kaspar.log.dir`) does not write it unless its level is set.
"""

import logging
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from kaspar.base.log import get_log
from kaspar.controller.metrics import ControllerMetrics
from kaspar.metadata.image import NO_LEADER, ClusterImage, DeletedTopic, PartitionImage, TopicImage

STATE_CHANGE_LOGGER: Final = "kaspar.state.change.logger"
log = get_log(STATE_CHANGE_LOGGER)
log.logger.setLevel(logging.WARNING)


class PartitionChange(NamedTuple):
    topic: str
    number: int
    old: PartitionImage
    new: PartitionImage

    @property
    def elected(self) -> bool:
        return self.new.leader not in (self.old.leader, NO_LEADER)

    @property
    def is_unclean(self) -> bool:
        """Whether the new leader was neither in sync nor eligible (PartitionRegistration.electionWasClean)."""
        return self.elected and self.new.leader not in self.old.isr and self.new.leader not in self.old.elr

    @property
    def is_from_eligible(self) -> bool:
        return self.elected and self.new.leader not in self.old.isr and self.new.leader in self.old.elr


def partition_changes(old: ClusterImage, new: ClusterImage, changed_topics: Iterable[str]) -> Iterator[PartitionChange]:
    """The partitions that are in both images and differ."""
    for name in changed_topics:
        before, after = old.topics.get(name), new.topics.get(name)
        if before is None or after is None or before.topic_id != after.topic_id:
            continue
        for number, (one, other) in enumerate(zip(before.partitions, after.partitions, strict=False)):
            if one is not other and one != other:
                yield PartitionChange(name, number, one, other)


def record_changes(
    old: ClusterImage,
    new: ClusterImage,
    changed_topics: Iterable[str],
    deleted_topics: Iterable[DeletedTopic],
    metrics: ControllerMetrics,
) -> None:
    """Count elections and, if the state change log is on, write it."""
    logged = log.logger.isEnabledFor(logging.INFO)
    for change in partition_changes(old, new, changed_topics):
        metrics.unclean_elections += change.is_unclean
        metrics.eligible_elections += change.is_from_eligible
        if logged:
            _log_partition(change, new.controller_epoch)
    if logged:
        for name in changed_topics:
            _log_topic(old.topics.get(name), new.topics.get(name), new.controller_epoch)
        for deleted in deleted_topics:
            if old.topics.get(deleted.name) is not None:
                log.info("a topic is deleted", topic=deleted.name, controller_epoch=new.controller_epoch)


def _log_partition(change: PartitionChange, controller_epoch: int) -> None:
    old, new = change.old, change.new
    values: dict[str, object] = {"partition": f"{change.topic}-{change.number}"}
    if new.leader != old.leader:
        values["leader"] = f"{_broker(old.leader)} -> {_broker(new.leader)}"
    if new.isr != old.isr:
        values["isr"] = f"{_list(old.isr)} -> {_list(new.isr)}"
    if new.elr != old.elr:
        values["elr"] = f"{_list(old.elr)} -> {_list(new.elr)}"
    if new.replicas != old.replicas:
        values["replicas"] = f"{_list(old.replicas)} -> {_list(new.replicas)}"
    if len(values) == 1:
        return
    values |= {"leader_epoch": new.leader_epoch, "controller_epoch": controller_epoch}
    if change.is_unclean:
        log.warning("a leader was elected that may lack committed records", **values)
    elif new.leader == NO_LEADER and old.leader != NO_LEADER:
        log.warning("a partition is offline", **values)
    else:
        log.info("a partition changed", **values)


def _log_topic(old: TopicImage | None, new: TopicImage | None, controller_epoch: int) -> None:
    if new is None:
        return
    before = 0 if old is None or old.topic_id != new.topic_id else len(old.partitions)
    if before < len(new.partitions):
        sentence = "partitions are created" if before else "a topic is created"
        log.info(sentence, topic=new.name, partitions=len(new.partitions) - before, controller_epoch=controller_epoch)
        for number, partition in enumerate(new.partitions[before:], before):
            log.debug(
                "a partition is created",
                partition=f"{new.name}-{number}",
                leader=_broker(partition.leader),
                isr=_list(partition.isr),
                leader_epoch=partition.leader_epoch,
            )


def _broker(broker_id: int) -> str:
    return "none" if broker_id == NO_LEADER else str(broker_id)


def _list(broker_ids: Iterable[int]) -> str:
    return "[" + ",".join(map(str, broker_ids)) + "]"
