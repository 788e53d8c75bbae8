"""A decision of the controller: the steps that carry it out and the answer to whoever asked.

A step is one transaction of the store and the image after it. A decision that is too large for one transaction has
several; each leaves the cluster in a sound state, so a crash between two of them needs no repair.
"""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import BrokerId
from kaspar.metadata import layout
from kaspar.metadata.image import EMPTY_CONFIGS, ClusterImage, Configs, DeletedTopic, TopicImage
from kaspar.metadata.store import MAX_TRANSACTION_BYTES, Operation, size_of

T = TypeVar("T")

_ROOM_FOR_FENCE_BYTES = 1024
_MAX_STEP_BYTES = MAX_TRANSACTION_BYTES - _ROOM_FOR_FENCE_BYTES


@dataclass(frozen=True, slots=True)
class Step:
    """`changed_topics` are those of which brokers have something to carry out."""

    operations: tuple[Operation, ...]
    image: ClusterImage
    changed_topics: frozenset[str]


@dataclass(frozen=True, slots=True)
class Decision(Generic[T]):
    steps: tuple[Step, ...]
    reply: T


class Draft:
    """The image as a decision changes it, entry by entry, and the operations that go with it.

    What one method call changes goes into one transaction.
    """

    def __init__(self, image: ClusterImage) -> None:
        self._sealed = image
        self._steps: list[Step] = []
        self._operations: list[Operation] = []
        self._size = 0
        self._topics: dict[str, TopicImage | None] = {}
        self._changed: set[str] = set()
        self._others: dict[str, Any] = {}

    def topic(self, name: str) -> TopicImage | None:
        return self._topics[name] if name in self._topics else self._sealed.topics.get(name)

    def image(self) -> ClusterImage:
        """The image as changed so far. Copies the index of topics if topics were changed."""
        image = replace(self._sealed, **self._others) if self._others else self._sealed
        return image.with_topics(self._topics) if self._topics else image

    def put_topic(self, topic: TopicImage, *, only_places: bool = False) -> None:
        """Creates or changes a topic. Raises Refused if that cannot be stored in one transaction. With `only_places` it
        is only noted where the brokers have its logs, which they know.
        """
        self._add(layout.topic_change(self.topic(topic.name), topic))
        self._topics[topic.name] = topic
        if not only_places:
            self._changed.add(topic.name)

    def delete_topic(self, topic: TopicImage) -> None:
        operations = layout.deletion(topic)
        self._add(operations)
        self._topics[topic.name] = None
        self._changed.add(topic.name)
        brokers = {replica for partition in topic.partitions for replica in partition.replicas}
        deleted = DeletedTopic(topic.name, topic.topic_id, tuple(sorted(brokers)))
        self._others["deleted_topics"] = {**self._other("deleted_topics"), topic.topic_id: deleted}

    def logs_removed(self, topic: DeletedTopic, broker_id: BrokerId) -> None:
        remaining = tuple(broker for broker in topic.brokers if broker != broker_id)
        deleted: dict[uuid.UUID, DeletedTopic] = dict(self._other("deleted_topics"))
        if remaining:
            deleted[topic.topic_id] = replace(topic, brokers=remaining)
        else:
            del deleted[topic.topic_id]
        self._add(layout.deleted_change(topic, deleted.get(topic.topic_id)))
        self._others["deleted_topics"] = deleted

    def put_configs(self, field: str, resource: str, configs: Configs) -> None:
        """`field` is one of the image's: broker_configs, group_configs, client_metrics_configs."""
        all_configs: dict[str, Configs] = dict(self._other(field))
        self._add(layout.config_change(layout.CONFIG_FOLDERS[field], resource, all_configs.get(resource), configs))
        all_configs[resource] = configs
        if not configs:
            del all_configs[resource]
        self._others[field] = all_configs

    def configs(self, field: str, resource: str) -> Configs:
        found: Configs = self._other(field).get(resource, EMPTY_CONFIGS)
        return found

    def put_brokers(self, brokers: Mapping[BrokerId, Any], epochs: Mapping[BrokerId, int]) -> None:
        if epochs != self._sealed.broker_epochs:
            self._add(layout.epochs_change(epochs))
        self._others.update(brokers=dict(brokers), broker_epochs=dict(epochs))

    def put_next_producer_id(self, next_producer_id: int) -> None:
        self._add(layout.producer_id_change(next_producer_id))
        self._others["next_producer_id"] = next_producer_id

    def put_features(self, levels: Mapping[str, int], epoch: int) -> None:
        self._add(layout.features_change(levels, epoch))
        self._others.update(features=dict(levels), features_epoch=epoch)

    def decide(self, reply: T) -> Decision[T]:
        if self._operations or self._others:
            self._seal()
        return Decision(tuple(self._steps), reply)

    def _other(self, field: str) -> Any:
        return self._others[field] if field in self._others else getattr(self._sealed, field)

    def _add(self, operations: Sequence[Operation]) -> None:
        size = sum(map(size_of, operations))
        if size > _MAX_STEP_BYTES:
            raise Refused(
                ErrorCode.POLICY_VIOLATION,
                f"The change takes {size} bytes of metadata, and one change may take {_MAX_STEP_BYTES}. "
                "Create the topic with fewer partitions and add the others afterwards.",
            )
        if self._size + size > _MAX_STEP_BYTES:
            self._seal()
        self._operations += operations
        self._size += size

    def _seal(self) -> None:
        self._sealed = self.image()
        self._steps.append(Step(tuple(self._operations), self._sealed, frozenset(self._changed)))
        self._operations, self._size = [], 0
        self._topics, self._changed, self._others = {}, set(), {}
