"""The controller as a pure core: an image and an event in, a decision out. It has no await, clock, file or socket.

It is the only one that decides about topics, partitions, settings, features and producer ids. What it needs beyond the
image (the settings of the broker it lives in, chance, new ids) is given to it once.
"""

import random
import uuid
from collections.abc import Callable
from typing import Any, assert_never, overload

from kaspar.base.ids import BrokerId, random_uuid
from kaspar.config import BrokerSettings
from kaspar.metadata import brokers, features
from kaspar.metadata.configs import ConfigDecisions
from kaspar.metadata.decision import Decision
from kaspar.metadata.events import (
    AllocateProducerIds,
    AlterConfigs,
    AlterPartitions,
    AssignDirectories,
    BrokersSeen,
    CreatedTopic,
    CreatePartitions,
    CreateTopics,
    DeleteTopics,
    Event,
    FeatureOutcome,
    IsrOutcome,
    LogsLost,
    LogsRemoved,
    NamedOutcome,
    ProducerIdBlock,
    ResourceOutcome,
    TopicDeletion,
    UpdateFeatures,
)
from kaspar.metadata.image import ClusterImage
from kaspar.metadata.topics import TopicDecisions


class Controller:
    """Decides. `settings` are the static ones of this broker; the dynamic ones come with the image."""

    def __init__(
        self,
        settings: BrokerSettings,
        *,
        chance: random.Random | None = None,
        new_topic_id: Callable[[], uuid.UUID] = random_uuid,
    ) -> None:
        self.broker_id = BrokerId(settings.config.node_id)
        self._settings = settings
        self._chance = chance or random.Random()
        self._new_topic_id = new_topic_id

    @overload
    def decide(self, image: ClusterImage, event: CreateTopics) -> Decision[tuple[CreatedTopic, ...]]: ...
    @overload
    def decide(self, image: ClusterImage, event: DeleteTopics) -> Decision[tuple[TopicDeletion, ...]]: ...
    @overload
    def decide(self, image: ClusterImage, event: CreatePartitions) -> Decision[tuple[NamedOutcome, ...]]: ...
    @overload
    def decide(self, image: ClusterImage, event: AlterConfigs) -> Decision[tuple[ResourceOutcome, ...]]: ...
    @overload
    def decide(self, image: ClusterImage, event: UpdateFeatures) -> Decision[tuple[FeatureOutcome, ...]]: ...
    @overload
    def decide(self, image: ClusterImage, event: AllocateProducerIds) -> Decision[ProducerIdBlock]: ...
    @overload
    def decide(self, image: ClusterImage, event: AlterPartitions) -> Decision[tuple[IsrOutcome, ...]]: ...
    @overload
    def decide(
        self, image: ClusterImage, event: BrokersSeen | LogsRemoved | AssignDirectories | LogsLost
    ) -> Decision[None]: ...
    @overload
    def decide(self, image: ClusterImage, event: Event) -> Decision[Any]: ...

    def decide(self, image: ClusterImage, event: Event) -> Decision[Any]:
        """Raises Refused where the event as a whole is refused; otherwise the reply says what became of each entry."""
        match event:
            case CreateTopics():
                return self._topics(image).create_topics(image, event)
            case DeleteTopics():
                return self._topics(image).delete_topics(image, event)
            case CreatePartitions():
                return self._topics(image).create_partitions(image, event)
            case AlterConfigs():
                return ConfigDecisions(self.broker_id, self.settings(image)).alter(image, event)
            case UpdateFeatures():
                return features.update_features(image, event)
            case AllocateProducerIds():
                return brokers.allocate_producer_ids(image, event)
            case AlterPartitions():
                return brokers.alter_partitions(image, event)
            case BrokersSeen():
                return brokers.brokers_seen(image, event)
            case LogsRemoved():
                return brokers.logs_removed(image, event)
            case AssignDirectories():
                return brokers.assign_directories(image, event)
            case LogsLost():
                return brokers.logs_lost(image, event)
            case _:
                assert_never(event)

    def settings(self, image: ClusterImage) -> BrokerSettings:
        """This broker's settings under the image's dynamic ones."""
        default, own = image.cluster_broker_config, image.broker_config(self.broker_id)
        if default != self._settings.dynamic_default or own != self._settings.dynamic_broker:
            self._settings = self._settings.with_dynamic(default=default, broker=own)
        return self._settings

    def _topics(self, image: ClusterImage) -> TopicDecisions:
        return TopicDecisions(self.settings(image).config, self._chance, self._new_topic_id)
