"""The controller as a pure core: an image and an event in, a decision out. It has no await, clock, file or socket.

Nothing else decides about topics, partitions, settings, features and producer ids. What it needs beyond the image (the
settings of its broker, a source of randomness, new ids) is passed to its constructor.
"""

import random
import uuid
from collections.abc import Callable
from typing import Any, TypeVar, assert_never, cast

from kaspar.base.ids import BrokerId, random_uuid
from kaspar.config import BrokerSettings
from kaspar.controller import acls, brokers, in_sync, leaders, reassignment, replica_logs
from kaspar.controller.client_quotas import alter_client_quotas
from kaspar.controller.configs import ConfigDecisions
from kaspar.controller.decision import Decision
from kaspar.controller.delegation_tokens import put_delegation_token, remove_delegation_token
from kaspar.controller.elections import Rules
from kaspar.controller.events import (
    AllocateProducerIds,
    AlterClientQuotas,
    AlterConfigs,
    AlterPartitions,
    AlterReassignments,
    AlterScramCredentials,
    AssignDirectories,
    BrokersSeen,
    ControlledShutdown,
    ControllerEvent,
    CreateAcls,
    CreatePartitions,
    CreateTopics,
    DeleteAcls,
    DeleteTopics,
    DirectoriesFailed,
    ElectLeaders,
    Event,
    FenceBrokers,
    LogsLost,
    LogsRemoved,
    PutDelegationToken,
    RebalanceLeaders,
    RemoveDelegationToken,
    UnregisterBroker,
    UpdateFeatures,
)
from kaspar.controller.features import update_features
from kaspar.controller.producer_ids import allocate_producer_ids
from kaspar.controller.scram import alter_scram_credentials
from kaspar.controller.topics import TopicDecisions
from kaspar.metadata.image import ClusterImage

R = TypeVar("R")


class Controller:
    """Decides about events. `settings` are this broker's static settings; the dynamic ones are in the image."""

    def __init__(
        self,
        settings: BrokerSettings,
        *,
        rng: random.Random | None = None,
        new_topic_id: Callable[[], uuid.UUID] = random_uuid,
    ) -> None:
        self.broker_id = BrokerId(settings.config.node_id)
        self._settings = settings
        self._rng = rng or random.Random()
        self._new_topic_id = new_topic_id

    def decide(self, image: ClusterImage, event: ControllerEvent[R]) -> Decision[R]:
        """Decide about an event. The reply has the outcome of each entry. Raises Refused if the event as a whole is
        refused.
        """
        return self._decide(image, cast(Event, event))

    def _decide(self, image: ClusterImage, event: Event) -> Decision[Any]:
        match event:
            case CreateTopics():
                return self._topics(image).create_topics(image, event)
            case DeleteTopics():
                return self._topics(image).delete_topics(image, event)
            case CreatePartitions():
                return self._topics(image).create_partitions(image, event)
            case AlterConfigs():
                received_by = self.broker_id if event.received_by is None else event.received_by
                return ConfigDecisions(self.broker_id, self.settings(image), received_by).alter(image, event)
            case AlterClientQuotas():
                return alter_client_quotas(image, event)
            case UpdateFeatures():
                return update_features(image, event, self.settings(image))
            case AlterScramCredentials():
                return alter_scram_credentials(image, event)
            case PutDelegationToken():
                return put_delegation_token(image, event)
            case RemoveDelegationToken():
                return remove_delegation_token(image, event)
            case AllocateProducerIds():
                return allocate_producer_ids(image, event)
            case AlterPartitions():
                return in_sync.alter_partitions(image, event, self._rules(image))
            case AlterReassignments():
                return reassignment.alter_reassignments(image, event, self._rules(image))
            case ElectLeaders():
                return leaders.elect_leaders(image, event, self._rules(image))
            case RebalanceLeaders():
                return leaders.rebalance_leaders(image, event, self._rules(image))
            case BrokersSeen():
                return brokers.brokers_seen(image, event, self._rules(image))
            case FenceBrokers():
                return brokers.fence_brokers(image, event, self._rules(image))
            case ControlledShutdown():
                return brokers.controlled_shutdown(image, event, self._rules(image))
            case UnregisterBroker():
                return brokers.unregister_broker(image, event)
            case LogsRemoved():
                return replica_logs.logs_removed(image, event)
            case AssignDirectories():
                return replica_logs.assign_directories(image, event, self._rules(image))
            case DirectoriesFailed():
                return brokers.directories_failed(image, event, self._rules(image))
            case LogsLost():
                return replica_logs.logs_lost(image, event, self._rules(image))
            case CreateAcls():
                return acls.create_acls(image, event)
            case DeleteAcls():
                return acls.delete_acls(image, event)
            case _:
                assert_never(event)

    def settings(self, image: ClusterImage) -> BrokerSettings:
        """This broker's static settings, overridden by the dynamic ones in the image."""
        default, own = image.cluster_broker_config, image.broker_config(self.broker_id)
        if default != self._settings.dynamic_default or own != self._settings.dynamic_broker:
            self._settings = self._settings.with_dynamic(default=default, broker=own)
        return self._settings

    def _rules(self, image: ClusterImage) -> Rules:
        return Rules.of(self.settings(image).config, image)

    def _topics(self, image: ClusterImage) -> TopicDecisions:
        return TopicDecisions(self.settings(image).config, self._rng, self._new_topic_id)
