"""Decisions about topics: create, delete, add partitions. The order of the checks and their messages are Kafka's."""

import random
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from kaspar.base.errors import ErrorCode, InvalidSetting, Refused
from kaspar.base.ids import ZERO_UUID, BrokerId, LeaderEpoch
from kaspar.config import BrokerConfig, validate_topic_overrides
from kaspar.controller.assignments import check_replicas
from kaspar.controller.decision import Decision, Draft
from kaspar.controller.events import (
    DONE,
    DUPLICATE_NAME,
    UNKNOWN_ID,
    UNKNOWN_NAME,
    CreatedTopic,
    CreatePartitions,
    CreateTopics,
    DeleteTopics,
    MorePartitions,
    NamedOutcome,
    NewTopic,
    Outcome,
    TopicDeletion,
    TopicReference,
)
from kaspar.controller.placement import place
from kaspar.metadata.image import BrokerRegistration, ClusterImage, PartitionImage, TopicImage
from kaspar.metadata.topic_names import CLUSTER_METADATA_TOPIC, check_topic_name, collision_key

MAX_PARTITIONS_PER_REQUEST = 10_000


@dataclass(frozen=True, slots=True)
class TopicDecisions:
    """What decisions about topics need beyond the image."""

    config: BrokerConfig
    rng: random.Random
    new_topic_id: Callable[[], uuid.UUID]

    def create_topics(self, image: ClusterImage, event: CreateTopics) -> Decision[tuple[CreatedTopic, ...]]:
        names = Counter(topic.name for topic in event.topics)
        alone = [topic for topic in event.topics if names[topic.name] == 1]
        replies: list[CreatedTopic] = []
        draft = Draft(image)
        too_many = self._too_many_partitions(alone)
        collisions = _collisions(image) if any(_may_collide(topic.name) for topic in alone) else {}
        for topic in alone:
            try:
                if too_many is not None:
                    raise too_many
                _check_new_name(draft, topic.name, collisions)
                created = self._new_topic(image, topic)
                if not event.validate_only:
                    draft.put_topic(created)
                replies.append(_created(created))
            except Refused as refused:
                replies.append(CreatedTopic(topic.name, Outcome.of(refused)))
        replies += [CreatedTopic(name, DUPLICATE_NAME) for name, times in names.items() if times > 1]
        return draft.decide(tuple(replies))

    def delete_topics(self, image: ClusterImage, event: DeleteTopics) -> Decision[tuple[TopicDeletion, ...]]:
        if not self.config.delete_topic_enable:
            disabled = Outcome(ErrorCode.TOPIC_DELETION_DISABLED, "Topic deletion is disabled.")
            return Decision((), tuple(TopicDeletion(topic.name, topic.topic_id, disabled) for topic in event.topics))
        draft = Draft(image)
        replies: list[TopicDeletion] = []
        for reference, topic, problem in _distinct(image, event.topics):
            if problem is not None:
                topic_id = topic.topic_id if topic is not None else reference.topic_id
                refusal = Outcome(ErrorCode.INVALID_REQUEST, problem)
                replies.append(TopicDeletion(reference.name, topic_id, refusal))
            elif topic is None:
                replies.append(TopicDeletion(reference.name, reference.topic_id, _unknown(reference)))
            else:
                draft.delete_topic(topic)
                replies.append(TopicDeletion(topic.name, topic.topic_id, DONE))
        return draft.decide(tuple(replies))

    def create_partitions(self, image: ClusterImage, event: CreatePartitions) -> Decision[tuple[NamedOutcome, ...]]:
        names = Counter(topic.name for topic in event.topics)
        replies = [NamedOutcome(name, DUPLICATE_NAME) for name, times in names.items() if times > 1]
        draft = Draft(image)
        for wanted in event.topics:
            if names[wanted.name] > 1:
                continue
            try:
                topic = draft.topic(wanted.name)
                if topic is None:
                    replies.append(NamedOutcome(wanted.name, Outcome(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)))
                    continue
                grown = self._grown_topic(image, topic, wanted)
                if not event.validate_only:
                    draft.put_topic(grown)
                replies.append(NamedOutcome(wanted.name, DONE))
            except Refused as refused:
                replies.append(NamedOutcome(wanted.name, Outcome.of(refused)))
        return draft.decide(tuple(replies))

    def _too_many_partitions(self, topics: Sequence[NewTopic]) -> Refused | None:
        total = 0
        for topic in topics:
            default = self.config.num_partitions if topic.num_partitions == -1 else topic.num_partitions
            total += len(topic.assignments) or max(default, 0)
        return _excessive() if total > MAX_PARTITIONS_PER_REQUEST else None

    def _new_topic(self, image: ClusterImage, topic: NewTopic) -> TopicImage:
        configs = self._checked_configs(topic)
        if topic.assignments:
            assignments = _checked_assignments(image, topic)
        else:
            assignments = self._placed(image, topic)
        partitions = tuple(new_partition(image, number, replicas) for number, replicas in enumerate(assignments))
        return TopicImage(topic.name, self.new_topic_id(), partitions, configs)

    def _checked_configs(self, topic: NewTopic) -> dict[str, str]:
        configs = {name: value for name, value in topic.configs if value is not None}
        if nulls := [name for name, value in topic.configs if value is None]:
            raise Refused(
                ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {','.join(sorted(nulls))}"
            )
        try:
            validate_topic_overrides(self.config, configs)
        except InvalidSetting as problem:
            raise Refused(ErrorCode.INVALID_CONFIG, str(problem)) from None
        return configs

    def _placed(self, image: ClusterImage, topic: NewTopic) -> list[tuple[BrokerId, ...]]:
        if topic.num_partitions < -1 or topic.num_partitions == 0:
            raise Refused(
                ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value."
            )
        if topic.replication_factor < -1 or topic.replication_factor == 0:
            raise Refused(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                "Replication factor must be larger than 0, or -1 to use the default value.",
            )
        count = self.config.num_partitions if topic.num_partitions == -1 else topic.num_partitions
        default = self.config.default_replication_factor
        factor = default if topic.replication_factor == -1 else topic.replication_factor
        return place(_up_to_stay(image), count, factor, self.rng, down=_down(image))

    def _grown_topic(self, image: ClusterImage, topic: TopicImage, wanted: MorePartitions) -> TopicImage:
        current = len(topic.partitions)
        more = wanted.count - current
        if more == 0:
            raise Refused(ErrorCode.INVALID_PARTITIONS, f"Topic already has {current} partition(s).")
        if more < 0:
            raise Refused(
                ErrorCode.INVALID_PARTITIONS,
                f"The topic {topic.name} currently has {current} partition(s); "
                f"{wanted.count} would not be an increase.",
            )
        if more > MAX_PARTITIONS_PER_REQUEST:
            raise _excessive()
        if wanted.assignments is None:
            existing = [partition.replicas for partition in topic.partitions]
            factor = topic.replication_factor
            assignments = place(_up_to_stay(image), more, factor, self.rng, existing, down=_down(image))
        else:
            assignments = _checked_additions(image, topic, wanted.assignments, more)
        added = tuple(new_partition(image, current + number, each) for number, each in enumerate(assignments))
        return replace(topic, partitions=topic.partitions + added)


def new_partition(image: ClusterImage, number: int, replicas: tuple[BrokerId, ...]) -> PartitionImage:
    """A partition led by its first replica that is up. All replicas that are up are in sync, because all are empty."""
    alive = tuple(replica for replica in replicas if image.is_active(replica))
    if not alive:
        raise Refused(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"All brokers specified in the manual partition assignment for partition {number} are fenced or in "
            "controlled shutdown.",
        )
    return PartitionImage(replicas, alive, alive[0], LeaderEpoch(0), 0)


def _up_to_stay(image: ClusterImage) -> list[BrokerRegistration]:
    return [broker for broker_id, broker in image.brokers.items() if broker_id not in image.shutting_down]


def _down(image: ClusterImage) -> list[BrokerId]:
    return [broker_id for broker_id in image.broker_epochs if broker_id not in image.brokers]


def _created(topic: TopicImage) -> CreatedTopic:
    return CreatedTopic(
        topic.name, DONE, topic.topic_id, len(topic.partitions), topic.replication_factor, topic.configs
    )


def _excessive() -> Refused:
    return Refused(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")


def _may_collide(name: str) -> bool:
    return "." in name or "_" in name


def _collisions(image: ClusterImage) -> dict[str, str]:
    """The topics that a new topic's name can collide with, by collision key."""
    return {collision_key(name): name for name in image.topics if _may_collide(name)}


def _check_new_name(draft: Draft, name: str, collisions: dict[str, str]) -> None:
    if name == CLUSTER_METADATA_TOPIC:
        raise Refused(ErrorCode.INVALID_REQUEST, f"Creation of internal topic {name} is prohibited.")
    check_topic_name(name)
    if draft.topic(name) is not None:
        raise Refused(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    other = collisions.get(collision_key(name))
    if other is not None and _may_collide(name):
        raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {other}")


def _checked_assignments(image: ClusterImage, topic: NewTopic) -> list[tuple[BrokerId, ...]]:
    """The replicas of every partition of a manual assignment, in the order of the partitions."""
    for value, name in ((topic.replication_factor, "replication factor"), (topic.num_partitions, "numPartitions")):
        if value != -1:
            raise Refused(
                ErrorCode.INVALID_REQUEST,
                f"A manual partition assignment was specified, but {name} was not set to -1.",
            )
    by_partition: dict[int, tuple[BrokerId, ...]] = {}
    factor: int | None = None
    for number, replicas in topic.assignments:
        if number in by_partition:
            raise Refused(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Found multiple manual partition assignments for partition {number}",
            )
        by_partition[number] = check_replicas(image, replicas, factor)
        factor = len(replicas)
    if sorted(by_partition) != list(range(len(by_partition))):
        raise Refused(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "partitions should be a consecutive 0-based integer sequence"
        )
    return [by_partition[number] for number in range(len(by_partition))]


def _checked_additions(
    image: ClusterImage, topic: TopicImage, assignments: Sequence[tuple[int, ...]], more: int
) -> list[tuple[BrokerId, ...]]:
    if len(assignments) != more:
        raise Refused(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {more} additional partition(s), but only {len(assignments)} assignment(s) "
            "were specified.",
        )
    return [check_replicas(image, replicas, topic.replication_factor) for replicas in assignments]


def _distinct(
    image: ClusterImage, references: Sequence[TopicReference]
) -> list[tuple[TopicReference, TopicImage | None, str | None]]:
    """Each referenced topic once, with an error message if the reference is invalid or the topic is named more than
    once.

    A topic that is named by its name and by its id has one result, for the reference by name, with its id.
    """
    names = Counter(reference.name for reference in references if reference.topic_id == ZERO_UUID)
    ids = Counter(reference.topic_id for reference in references if reference.name is None)
    found: list[tuple[TopicReference, TopicImage | None, str | None]] = []
    for reference in dict.fromkeys(references):
        name, topic_id = reference.name, reference.topic_id
        if name is None and topic_id == ZERO_UUID:
            found.append((reference, None, "Neither topic name nor id were specified."))
        elif name is not None and topic_id != ZERO_UUID:
            found.append((reference, None, "You may not specify both topic name and topic id."))
        elif name is not None and names[name] > 1:
            found.append((reference, None, "Duplicate topic name."))
        elif name is None and ids[topic_id] > 1:
            found.append((reference, None, "Duplicate topic id."))
        else:
            topic = _find(image, reference)
            if name is not None and topic is not None and topic.topic_id in ids:
                found.append((reference, topic, "The provided topic name maps to an ID that was already supplied."))
            elif name is not None or topic is None or names[topic.name] != 1:
                found.append((reference, topic, None))
    return found


def _find(image: ClusterImage, reference: TopicReference) -> TopicImage | None:
    if reference.name is not None:
        return image.topics.get(reference.name)
    return image.topic_by_id(reference.topic_id)


def _unknown(reference: TopicReference) -> Outcome:
    return UNKNOWN_ID if reference.name is None else UNKNOWN_NAME
