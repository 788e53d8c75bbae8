"""A decision of the controller: the steps that carry it out and the reply.

A step is one transaction of the store and the image after it. A decision that is too large for one transaction has
several steps; each leaves the cluster in a consistent state, so a crash between two steps needs no repair.
"""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from kaspar.acls.acl import Acl
from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import BrokerId
from kaspar.metadata.image import (
    EMPTY_CONFIGS,
    BrokerRegistration,
    ClusterImage,
    Configs,
    DeletedTopic,
    PartitionImage,
    TopicImage,
)
from kaspar.metadata.layout import (
    acl_nodes,
    broker_nodes,
    cluster_nodes,
    config_nodes,
    credential_nodes,
    quota_nodes,
    topic_nodes,
)
from kaspar.metadata.store import MAX_TRANSACTION_BYTES, Operation, size_of
from kaspar.quotas.entities import Limits, QuotaEntity
from kaspar.security.delegation_tokens import DelegationToken
from kaspar.security.scram import ScramCredential

T = TypeVar("T")

_ROOM_FOR_FENCE_BYTES = 1024
_MAX_STEP_BYTES = MAX_TRANSACTION_BYTES - _ROOM_FOR_FENCE_BYTES


@dataclass(frozen=True, slots=True)
class Step:
    """One transaction and the image after it. `changed_topics` are the topics with changes that brokers have to apply,
    `deleted_topics` those that the step deletes.
    """

    operations: tuple[Operation, ...]
    image: ClusterImage
    changed_topics: frozenset[str]
    deleted_topics: tuple[DeletedTopic, ...] = ()


@dataclass(frozen=True, slots=True)
class Decision(Generic[T]):
    steps: tuple[Step, ...]
    reply: T


class Draft:
    """The image as a decision changes it, entry by entry, and the store operations for these changes.

    The changes of one method call are stored in one transaction, unless its docstring says otherwise.
    """

    def __init__(self, image: ClusterImage) -> None:
        self._sealed = image
        self._steps: list[Step] = []
        self._operations: list[Operation] = []
        self._size = 0
        self._topics: dict[str, TopicImage | None] = {}
        self._changed: set[str] = set()
        self._deleted: list[DeletedTopic] = []
        self._others: dict[str, Any] = {}

    def topic(self, name: str) -> TopicImage | None:
        return self._topics[name] if name in self._topics else self._sealed.topics.get(name)

    def image(self) -> ClusterImage:
        """The image as changed so far. Copies the index of topics if topics were changed."""
        image = replace(self._sealed, **self._others) if self._others else self._sealed
        return image.with_topics(self._topics) if self._topics else image

    def put_topic(self, topic: TopicImage) -> None:
        """Create or change a topic. Raises Refused if the change does not fit into one transaction."""
        self._add(topic_nodes.topic_change(self.topic(topic.name), topic))
        self._topics[topic.name] = topic
        self._changed.add(topic.name)

    def put_partitions(
        self, topic: TopicImage, partitions: tuple[PartitionImage, ...], *, only_places: bool = False
    ) -> None:
        """Change partitions of a topic, in several transactions if necessary: the new leaders of a very large topic may
        not fit into one. `only_places`: only the directories of the logs change, which brokers need not be told because
        they reported them.
        """
        changed = replace(topic, partitions=partitions, former_brokers=_former_brokers(topic, partitions))
        changes = topic_nodes.partition_changes(topic, changed)
        while changes:
            fitting = _how_many_fit([operation for _, operation in changes])
            now, changes = changes[:fitting], changes[fitting:]
            self._add([operation for _, operation in now])
            end = now[-1][0]
            mixed = partitions[:end] + topic.partitions[end:]
            self._topics[topic.name] = replace(changed, partitions=mixed) if changes else changed
            if not only_places:
                self._changed.add(topic.name)

    def delete_topic(self, topic: TopicImage) -> None:
        operations = topic_nodes.deletion(topic)
        self._add(operations)
        self._topics[topic.name] = None
        self._changed.add(topic.name)
        deleted = DeletedTopic(topic.name, topic.topic_id, topic.brokers)
        self._deleted.append(deleted)
        self._others["deleted_topics"] = {**self._other("deleted_topics"), topic.topic_id: deleted}

    def logs_removed(self, topic: DeletedTopic, broker_id: BrokerId) -> None:
        remaining = tuple(broker for broker in topic.brokers if broker != broker_id)
        deleted: dict[uuid.UUID, DeletedTopic] = dict(self._other("deleted_topics"))
        if remaining:
            deleted[topic.topic_id] = replace(topic, brokers=remaining)
        else:
            del deleted[topic.topic_id]
        self._add(topic_nodes.deleted_change(topic, deleted.get(topic.topic_id)))
        self._others["deleted_topics"] = deleted

    def put_configs(self, field: str, resource: str, configs: Configs) -> None:
        """Set a resource's settings. `field` of the image: broker_configs, group_configs, client_metrics_configs."""
        all_configs: dict[str, Configs] = dict(self._other(field))
        self._add(
            config_nodes.config_change(config_nodes.CONFIG_FOLDERS[field], resource, all_configs.get(resource), configs)
        )
        all_configs[resource] = configs
        if not configs:
            del all_configs[resource]
        self._others[field] = all_configs

    def configs(self, field: str, resource: str) -> Configs:
        found: Configs = self._other(field).get(resource, EMPTY_CONFIGS)
        return found

    def put_scram(self, user: str, credentials: Mapping[str, ScramCredential]) -> None:
        """Set the credentials of a user, by mechanism. An empty mapping removes the user."""
        everybody: dict[str, Mapping[str, ScramCredential]] = dict(self._other("scram_credentials"))
        self._add(credential_nodes.scram_change(user, everybody.get(user, {}), credentials))
        everybody[user] = dict(credentials)
        if not credentials:
            del everybody[user]
        self._others["scram_credentials"] = everybody

    def scram(self, user: str) -> Mapping[str, ScramCredential]:
        found: Mapping[str, ScramCredential] = self._other("scram_credentials").get(user, {})
        return found

    def put_token(self, token: DelegationToken) -> None:
        tokens: dict[str, DelegationToken] = dict(self._other("delegation_tokens"))
        self._add(credential_nodes.token_change(token, is_new=token.token_id not in tokens))
        self._others["delegation_tokens"] = {**tokens, token.token_id: token}

    def remove_token(self, token_id: str) -> None:
        tokens: dict[str, DelegationToken] = dict(self._other("delegation_tokens"))
        self._add(credential_nodes.token_removal(token_id))
        del tokens[token_id]
        self._others["delegation_tokens"] = tokens

    def put_quotas(self, entity: QuotaEntity, limits: Limits) -> None:
        quotas: dict[QuotaEntity, Limits] = dict(self._other("client_quotas"))
        self._add(quota_nodes.quota_change(entity, quotas.get(entity), limits))
        quotas[entity] = limits
        if not limits:
            del quotas[entity]
        self._others["client_quotas"] = quotas

    def quotas(self, entity: QuotaEntity) -> Limits:
        found: Limits = self._other("client_quotas").get(entity, {})
        return found

    def put_brokers(
        self, brokers: Mapping[BrokerId, BrokerRegistration], *, fenced: Iterable[BrokerRegistration] = ()
    ) -> None:
        """Set the brokers that are up now, and delete the registrations of the `fenced` ones."""
        epochs: dict[BrokerId, int] = dict(self._other("broker_epochs"))
        incarnations: dict[BrokerId, int] = dict(self._other("broker_incarnations"))
        for broker_id, broker in brokers.items():
            epochs[broker_id], incarnations[broker_id] = broker.epoch, broker.incarnation
        before: Mapping[BrokerId, BrokerRegistration] = self._other("brokers")
        stopping: frozenset[BrokerId] = self._other("shutting_down")
        still = {each for each in stopping if each in brokers and brokers[each].epoch == before[each].epoch}
        self._put_epochs(epochs, incarnations, [broker_nodes.fencing(registration) for registration in fenced])
        self._others.update(brokers=dict(brokers), shutting_down=frozenset(still))

    def put_registration(self, broker: BrokerRegistration) -> None:
        """Change the registration of a broker that is up: it has fewer log directories than it registered with."""
        brokers: Mapping[BrokerId, BrokerRegistration] = self._other("brokers")
        self._add([broker_nodes.registration_change(broker)])
        self._others["brokers"] = {**brokers, broker.broker_id: broker}

    def forget_broker(self, broker_id: BrokerId) -> None:
        """Remove a broker's epoch and incarnation: it is no longer registered."""
        epochs: dict[BrokerId, int] = dict(self._other("broker_epochs"))
        incarnations: dict[BrokerId, int] = dict(self._other("broker_incarnations"))
        del epochs[broker_id]
        incarnations.pop(broker_id, None)
        self._put_epochs(epochs, incarnations, [])

    def _put_epochs(
        self, epochs: dict[BrokerId, int], incarnations: dict[BrokerId, int], operations: list[Operation]
    ) -> None:
        if epochs != self._other("broker_epochs") or incarnations != self._other("broker_incarnations"):
            operations += broker_nodes.epochs_change(epochs, incarnations)
        self._add(operations)
        self._others.update(broker_epochs=epochs, broker_incarnations=incarnations)

    def put_shutting_down(self, broker_ids: frozenset[BrokerId]) -> None:
        self._others["shutting_down"] = broker_ids

    def put_next_producer_id(self, next_producer_id: int) -> None:
        self._add(cluster_nodes.producer_id_change(next_producer_id))
        self._others["next_producer_id"] = next_producer_id

    def put_features(self, levels: Mapping[str, int], epoch: int) -> None:
        self._add(cluster_nodes.features_change(levels, epoch))
        self._others.update(features=dict(levels), features_epoch=epoch)

    def put_acls(self, added: Mapping[str, Acl], removed: Iterable[str]) -> None:
        """Add and remove ACLs, in several transactions if necessary: each ACL is a separate change, and there may be
        thousands.
        """
        gone = frozenset(removed)
        buckets = {acl_nodes.acl_bucket(acl_id) for acl_id in (*added, *gone)}
        before: dict[str, dict[str, Acl]] = {bucket: {} for bucket in buckets}
        for acl_id, acl in self._other("acls").items():
            if (bucket := acl_nodes.acl_bucket(acl_id)) in buckets:
                before[bucket][acl_id] = acl
        after = {
            bucket: {acl_id: acl for acl_id, acl in acls.items() if acl_id not in gone}
            for bucket, acls in before.items()
        }
        for acl_id, acl in added.items():
            after[acl_nodes.acl_bucket(acl_id)][acl_id] = acl
        changed: dict[str, Acl] = {}
        for bucket in sorted(buckets):
            operations = acl_nodes.acls_change(bucket, before[bucket], after[bucket])
            self._add(operations, advice="Use fewer ACLs, with prefixes.")
            if self._others.get("acls") is not changed:  # in the first bucket, and after _add has sealed a step
                changed = dict(self._other("acls"))
                self._others["acls"] = changed
            for acl_id in before[bucket].keys() - after[bucket].keys():
                del changed[acl_id]
            for acl_id in after[bucket].keys() - before[bucket].keys():
                changed[acl_id] = added[acl_id]

    def decide(self, reply: T) -> Decision[T]:
        if self._operations or self._others:
            self._seal()
        return Decision(tuple(self._steps), reply)

    def _other(self, field: str) -> Any:
        return self._others[field] if field in self._others else getattr(self._sealed, field)

    def _add(
        self,
        operations: Sequence[Operation],
        *,
        advice: str = "Create the topic with fewer partitions and add the others afterwards.",
    ) -> None:
        size = sum(map(size_of, operations))
        if size > _MAX_STEP_BYTES:
            raise Refused(
                ErrorCode.POLICY_VIOLATION,
                f"The change takes {size} bytes of metadata, but at most {_MAX_STEP_BYTES} are allowed. {advice}",
            )
        if self._size + size > _MAX_STEP_BYTES:
            self._seal()
        self._operations += operations
        self._size += size

    def _seal(self) -> None:
        self._sealed = self.image()
        step = Step(tuple(self._operations), self._sealed, frozenset(self._changed), tuple(self._deleted))
        self._steps.append(step)
        self._operations, self._size = [], 0
        self._topics, self._changed, self._deleted, self._others = {}, set(), [], {}


class PartitionEdits:
    """Collects changes of single partitions, so that a topic is stored once however many of its partitions change."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._edited: dict[str, tuple[TopicImage, list[PartitionImage]]] = {}

    def partition(self, topic: TopicImage, number: int) -> PartitionImage:
        """The partition with the edits so far."""
        edited = self._edited.get(topic.name)
        return topic.partitions[number] if edited is None else edited[1][number]

    def put(self, topic: TopicImage, number: int, partition: PartitionImage) -> None:
        if topic.name not in self._edited:
            self._edited[topic.name] = topic, list(topic.partitions)
        self._edited[topic.name][1][number] = partition

    def store(self, *, only_places: bool = False) -> None:
        for topic, partitions in self._edited.values():
            self._draft.put_partitions(topic, tuple(partitions), only_places=only_places)


def _former_brokers(topic: TopicImage, partitions: tuple[PartitionImage, ...]) -> tuple[BrokerId, ...]:
    left = {
        replica
        for old, new in zip(topic.partitions, partitions, strict=True)
        if old.replicas is not new.replicas
        for replica in old.replicas
        if replica not in new.replicas
    }
    return tuple(sorted(left.union(topic.former_brokers))) if left else topic.former_brokers


def _how_many_fit(operations: Sequence[Operation]) -> int:
    """How many of the operations, from the first on, fit into one transaction; at least one."""
    size = 0
    for number, operation in enumerate(operations):
        size += size_of(operation)
        if size > _MAX_STEP_BYTES:
            return max(number, 1)
    return len(operations)
