"""Decisions about brokers that register, die, shut down or are unregistered.

Each decision makes one pass over all partitions and uses sets to find the affected ones. There is no index of
partitions by broker: with 200,000 partitions the pass takes less time than storing the changes after a broker is lost.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import BrokerId, TopicPartition
from kaspar.controller.decision import Decision, Draft
from kaspar.controller.elections import Electorate, Rules, remaining_in_sync, settled
from kaspar.controller.events import BrokersSeen, ControlledShutdown, DirectoriesFailed, FenceBrokers, UnregisterBroker
from kaspar.metadata.image import BrokerRegistration, ClusterImage, PartitionImage


def brokers_seen(image: ClusterImage, event: BrokersSeen, rules: Rules) -> Decision[None]:
    """Elect leaders where a leader is down or came back after a crash, and remove brokers that are down or crashed from
    the in-sync replicas (KIP-841, KIP-966).

    A broker that was restarted between two checks, and had closed its logs cleanly, changes nothing. Kafka would have
    fenced it while it was down, and so removed it from the in-sync replicas. It may stay: it has every record that it
    had acknowledged, and no record was committed without it meanwhile, because that requires a change of the in-sync
    replicas. For the same reason a leader keeps its epoch.
    """
    crashed = frozenset(broker_id for broker_id, broker in event.brokers.items() if _has_crashed(image, broker))
    stopping = frozenset(each for each in image.shutting_down if _is_same(image.brokers, event.brokers, each))
    draft = Draft(image)
    _elect(draft, image, rules, Electorate(event.brokers, stopping, crashed))
    if event.brokers != image.brokers:
        # Last, so that the elections are repeated after a crash in between: an extra leader epoch does no harm.
        draft.put_brokers(event.brokers)
    return draft.decide(None)


def _has_crashed(image: ClusterImage, broker: BrokerRegistration) -> bool:
    """Whether the broker may have lost records since it was last seen: its last start, or one that the controller
    missed, followed a crash. For a broker that is unknown, or was unregistered since, all starts count.
    """
    broker_id = broker.broker_id
    if broker.epoch == image.broker_epochs.get(broker_id):
        return False
    return not broker.clean_start or broker.last_crash > image.broker_incarnations.get(broker_id, 0)


def fence_brokers(image: ClusterImage, event: FenceBrokers, rules: Rules) -> Decision[None]:
    """Remove the brokers' registrations first: if this controller crashes in between, the next one sees that they are
    down.
    """
    fenced = [
        broker
        for broker_id, epoch in dict(event.brokers).items()
        if (broker := image.brokers.get(broker_id)) is not None and broker.epoch == epoch
    ]
    draft = Draft(image)
    if fenced:
        dead = {broker.broker_id for broker in fenced}
        up = {broker_id: broker for broker_id, broker in image.brokers.items() if broker_id not in dead}
        draft.put_brokers(up, fenced=fenced)
        _elect(draft, image, rules, Electorate(up, image.shutting_down - dead))
    return draft.decide(None)


def controlled_shutdown(
    image: ClusterImage, event: ControlledShutdown, rules: Rules
) -> Decision[tuple[TopicPartition, ...]]:
    """Move leadership to other in-sync replicas, and remove the broker from the in-sync replicas where others remain.
    Where none remains, it leads until it stops: unlike in Kafka, clients are served as long as possible.
    """
    check_broker_epoch(image, event.broker_id, event.broker_epoch)
    draft = Draft(image)
    shutting_down = image.shutting_down | {event.broker_id}
    if shutting_down != image.shutting_down:
        draft.put_shutting_down(shutting_down)
    _elect(draft, image, rules, Electorate(image.brokers, shutting_down))
    return draft.decide(
        tuple(
            TopicPartition(topic.name, number)
            for topic in draft.image().topics.values()
            for number, partition in enumerate(topic.partitions)
            if partition.leader == event.broker_id
        )
    )


def unregister_broker(image: ClusterImage, event: UnregisterBroker) -> Decision[None]:
    """Forget a broker, and no longer wait until it has removed logs. Partitions keep it as a replica until they are
    reassigned.
    """
    broker_id = event.broker_id
    if broker_id in image.brokers:
        raise Refused(
            ErrorCode.INVALID_REQUEST,
            f"Broker {broker_id} is running. Stop it before unregistering it, or it will register again.",
        )
    if broker_id not in image.broker_epochs:
        raise Refused(ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker ID {broker_id} is not currently registered")
    draft = Draft(image)
    for deleted in image.deleted_topics.values():
        if broker_id in deleted.brokers:
            draft.logs_removed(deleted, broker_id)
    for topic in image.topics.values():
        if broker_id in topic.former_brokers:
            remaining = tuple(each for each in topic.former_brokers if each != broker_id)
            draft.put_topic(replace(topic, former_brokers=remaining))
    draft.forget_broker(broker_id)
    return draft.decide(None)


def directories_failed(image: ClusterImage, event: DirectoriesFailed, rules: Rules) -> Decision[None]:
    """Elect other leaders for the partitions in the failed directories. A broker without any directory stops itself."""
    check_broker_epoch(image, event.broker_id, event.broker_epoch)
    broker = image.brokers[event.broker_id]
    remaining = tuple(each for each in broker.log_dirs if each not in event.directories)
    draft = Draft(image)
    if remaining and remaining != broker.log_dirs:
        changed = replace(broker, log_dirs=remaining)
        _elect(draft, image, rules, Electorate({**image.brokers, event.broker_id: changed}, image.shutting_down))
        draft.put_registration(changed)  # last, so that a retry after a crash in between completes the elections
    return draft.decide(None)


def check_broker_epoch(image: ClusterImage, broker_id: BrokerId, epoch: int) -> None:
    broker = image.brokers.get(broker_id)
    if broker is None or broker.epoch != epoch:
        raise Refused(ErrorCode.STALE_BROKER_EPOCH, f"Broker {broker_id} is not up in epoch {epoch}.")


def elect_leaderless(draft: Draft, rules: Rules) -> None:
    """Repeat the election where there is no leader, or one without its log directory: changed settings may allow it."""
    image = draft.image()
    electorate = Electorate.of(image)
    _elect_where(draft, image, rules, electorate, electorate.lacks_leader)


def _elect(draft: Draft, image: ClusterImage, rules: Rules, electorate: Electorate) -> None:
    active = frozenset(electorate.brokers) - electorate.shutting_down
    crashed = electorate.crashed
    relocated = {
        broker_id
        for broker_id, broker in electorate.brokers.items()
        if broker.log_dirs and broker != image.brokers.get(broker_id)
    }

    def is_concerned(partition: PartitionImage) -> bool:
        isr = partition.isr
        if partition.leader not in active or not active.issuperset(isr):
            return True
        if crashed and not (crashed.isdisjoint(isr) and crashed.isdisjoint(partition.elr)):
            return True
        if relocated and not electorate.can_lead(partition, partition.leader):
            return True  # the leader's log directory is missing, and another replica may have come back
        if relocated.isdisjoint(isr):
            return False
        return not all(electorate.can_lead(partition, each) for each in isr)

    _elect_where(draft, image, rules, electorate, is_concerned)


def _elect_where(
    draft: Draft,
    image: ClusterImage,
    rules: Rules,
    electorate: Electorate,
    is_concerned: Callable[[PartitionImage], bool],
) -> None:
    for topic in image.topics.values():
        numbers = [number for number, partition in enumerate(topic.partitions) if is_concerned(partition)]
        if not numbers:
            continue
        of_topic = rules.of_topic(topic)
        changed = list(topic.partitions)
        for number in numbers:
            old = changed[number]
            wanted = old._replace(isr=remaining_in_sync(old, of_topic, electorate))
            changed[number] = settled(old, wanted, of_topic, electorate)
        if any(changed[number] is not topic.partitions[number] for number in numbers):
            draft.put_partitions(topic, tuple(changed))


def _is_same(
    before: Mapping[BrokerId, BrokerRegistration], now: Mapping[BrokerId, BrokerRegistration], broker_id: BrokerId
) -> bool:
    return broker_id in before and broker_id in now and before[broker_id].epoch == now[broker_id].epoch
