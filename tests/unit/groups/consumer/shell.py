"""The shell of a group shard for tests of consumer groups: topics that change, consumers that do as KIP-848 says."""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from kaspar.base.errors import ErrorCode, Refused
from kaspar.config.broker.groups import GroupSettings
from kaspar.coordination import Decision, StoredRecord
from kaspar.groups.consumer.member import Member
from kaspar.groups.consumer.membership import ConsumerMembership
from kaspar.groups.consumer.patterns import PatternsResolved
from kaspar.groups.consumer.requests import heartbeat_refused, unchanged
from kaspar.groups.consumer_group import ConsumerGroup
from kaspar.groups.group import GroupClient
from kaspar.groups.topics import TopicView
from kaspar.protocol.consumer_protocol import read_assignment
from kaspar.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    RequestTopicPartitions,
)
from kaspar.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription, TopicPartition
from kaspar.protocol.schema import Message
from tests.unit.groups.shell import GROUP, REBALANCE_MS, Shell, Waiting
from tests.unit.groups.subscriptions import write_subscription

HEARTBEAT_MS = 5_000
CONSUMER_SESSION_MS = 45_000
AT_ONCE = GroupSettings(group_consumer_assignment_interval_ms=0, group_initial_rebalance_delay_ms=0)
"""Assignments wait for nothing."""


def topic_id(name: str) -> uuid.UUID:
    return uuid.uuid5(uuid.NAMESPACE_OID, name)


class Topics:
    """`groups.topics.TopicsView` of a few topics and their partition counts."""

    def __init__(self, counts: dict[str, int]) -> None:
        self._views = {name: TopicView(name, topic_id(name), count) for name, count in counts.items()}
        self._names = {view.topic_id: name for name, view in self._views.items()}

    def topic(self, name: str) -> TopicView | None:
        return self._views.get(name)

    def name_of(self, topic_id: uuid.UUID) -> str | None:
        return self._names.get(topic_id)

    def names(self) -> Iterable[str]:
        return tuple(self._views)


class ConsumerShell(Shell):
    def __init__(self, settings: GroupSettings = AT_ONCE, **counts: int) -> None:
        self.counts = counts or {"orders": 4}
        super().__init__(settings)

    def start(self) -> None:
        super().start()
        self.change_topics()

    def change_topics(self, **counts: int) -> None:
        """Topics that are made, get more partitions, or go (0)."""
        before = dict(self.counts)
        self.counts = {name: count for name, count in {**self.counts, **counts}.items() if count}
        names = {*before, *self.counts} if not counts else set(counts)
        deleted = {name: {topic_id(name)} for name in before.keys() - self.counts.keys()}
        self.carry_out(self.shard.topics_changed(Topics(self.counts), names, self.now, deleted=deleted))

    def beat(
        self, member_id: str, epoch: int, *, version: int = 1, client_id: str = "client", **said: Any
    ) -> ConsumerGroupHeartbeatResponse:
        said.setdefault("group_id", GROUP)
        said.setdefault("topic_partitions", None)
        request = ConsumerGroupHeartbeatRequest(member_id=member_id, member_epoch=epoch, **said)
        return self.ask(request, self.client(version, client_id))

    def ask(self, request: ConsumerGroupHeartbeatRequest, client: GroupClient) -> ConsumerGroupHeartbeatResponse:
        response = self.submit(lambda shard, ticket, now: self._decide(request, client), heartbeat_refused).response
        assert isinstance(response, ConsumerGroupHeartbeatResponse)
        return response

    def _decide(self, request: ConsumerGroupHeartbeatRequest, client: GroupClient) -> Decision:
        """As the handler does."""
        try:
            return self.shard.consumer_heartbeat(request, client, self.now)
        except Refused as refusal:
            return Decision(response=heartbeat_refused(refusal.code, refusal.message))

    def unchanged(self, member_id: str, epoch: int, **said: Any) -> Message | None:
        """The response, if the heartbeat does no more than to extend a session."""
        said.setdefault("topic_partitions", None)
        request = ConsumerGroupHeartbeatRequest(group_id=GROUP, member_id=member_id, member_epoch=epoch, **said)
        decision = unchanged(self.membership, request, self.client(1), self.now)
        return None if decision is None else decision.response

    def work(self) -> None:
        """What was to be done in threads."""
        actions, self.actions = self.actions, []
        for action in actions:
            event = action.run()
            if isinstance(event, PatternsResolved):
                self.carry_out(self.shard.patterns_resolved(event, self.now))
            else:
                self.carry_out(self.shard.assignment_computed(event, self.now))

    def consumer(self, member_id: str, *topics: str, **how: Any) -> "Consumer":
        return Consumer(self, member_id, topics=topics or ("orders",), **how)

    @property
    def group(self) -> ConsumerGroup:
        return self.group_of(GROUP)

    @property
    def membership(self) -> ConsumerMembership:
        return self.group.membership

    def group_of(self, group_id: str) -> ConsumerGroup:
        group = self.shard.groups[group_id]
        assert isinstance(group, ConsumerGroup)
        return group

    def member(self, member_id: str, group_id: str = GROUP) -> Member:
        return self.group_of(group_id).membership.state.members[member_id]

    def owners(self) -> dict[str, set[str]]:
        """What each member has, or has to give up, as the log says."""
        return {
            member.member_id: {
                f"{self._name(topic)}-{partition}"
                for partitions in (member.assigned, member.pending_revocation)
                for topic, epochs in partitions.items()
                for partition in epochs
            }
            for member in self.membership.state.members.values()
        }

    def _name(self, topic: uuid.UUID) -> str:
        return Topics(self.counts).name_of(topic) or "gone"

    def settle(self, *consumers: "Consumer", rounds: int = 12) -> None:  # type: ignore[override]
        """All members heartbeat until nothing changes any more."""
        for _ in range(rounds):
            self.advance(HEARTBEAT_MS)
            self.work()
            for consumer in consumers:
                consumer.heartbeat()
        assert self.state in ("Stable", "Empty"), self.state

    def since(self, position: int) -> list[StoredRecord]:
        return self.records[position:]


@dataclass
class Consumer:
    """A client: it gives up what it is no longer assigned, then says what it has; nothing else twice, unless a response
    was lost.
    """

    shell: ConsumerShell
    member_id: str
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    instance_id: str | None = None
    assignor: str | None = None
    epoch: int = 0
    owned: set[tuple[uuid.UUID, int]] = field(default_factory=set)
    has_news: bool = False
    sends_everything: bool = False
    """It has missed a response, or got an error for one."""
    is_fenced: bool = False
    """Another has taken its instance id over."""
    response: ConsumerGroupHeartbeatResponse | None = None

    def join(self) -> "Consumer":
        self.owned = set()
        self.epoch = 0
        self._take(
            self.shell.beat(
                self.member_id,
                0,
                instance_id=self.instance_id,
                rebalance_timeout_ms=REBALANCE_MS,
                subscribed_topic_names=self.topics if self.pattern is None else None,
                subscribed_topic_regex=self.pattern,
                server_assignor=self.assignor,
                topic_partitions=(),
            )
        )
        return self

    def subscribe(self, *topics: str) -> None:
        self.topics = topics
        self._take(self.shell.beat(self.member_id, self.epoch, **self._identity, subscribed_topic_names=topics))

    def heartbeat(self) -> None:
        """As soon as it has applied its assignment, it reports what it owns."""
        if self.epoch <= 0:
            self.join()
            return
        said = self.everything if self.sends_everything else {}
        if self.has_news:
            said["topic_partitions"] = self.reported
        self.has_news = self.sends_everything = False
        self._take(self.shell.beat(self.member_id, self.epoch, **self._identity, **said))

    def miss_a_response(self) -> None:
        said: dict[str, Any] = {"topic_partitions": self.reported} if self.has_news else {}
        self.shell.beat(self.member_id, self.epoch, **self._identity, **said)
        self.sends_everything = True

    @property
    def everything(self) -> dict[str, Any]:
        return {
            "rebalance_timeout_ms": REBALANCE_MS,
            "subscribed_topic_names": self.topics if self.pattern is None else None,
            "subscribed_topic_regex": self.pattern,
            "server_assignor": self.assignor,
            "topic_partitions": self.reported,
        }

    def leave(self, epoch: int = -1) -> ConsumerGroupHeartbeatResponse:
        self.epoch = epoch
        self.owned = set()
        return self.shell.beat(self.member_id, epoch, instance_id=self.instance_id)

    @property
    def _identity(self) -> dict[str, Any]:
        return {"instance_id": self.instance_id}

    @property
    def reported(self) -> tuple[RequestTopicPartitions, ...]:
        topics = sorted({topic for topic, _ in self.owned})
        return tuple(
            RequestTopicPartitions(
                topic_id=topic, partitions=tuple(sorted(each for owner, each in self.owned if owner == topic))
            )
            for topic in topics
        )

    def _take(self, response: ConsumerGroupHeartbeatResponse) -> None:
        self.response = response
        if response.error_code in (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID):
            self.owned = set()
            self.epoch = 0
            return
        if response.error_code == ErrorCode.FENCED_INSTANCE_ID:
            self.owned = set()
            self.is_fenced = True
            return
        if response.error_code != ErrorCode.NONE:
            self.sends_everything = True
            return
        self.epoch = response.member_epoch
        if response.assignment is not None:
            assigned = {
                (topic.topic_id, partition)
                for topic in response.assignment.topic_partitions
                for partition in topic.partitions
            }
            self.has_news = assigned != self.owned
            self.owned = assigned

    @property
    def partitions(self) -> set[str]:
        return {f"{self.shell._name(topic)}-{partition}" for topic, partition in self.owned}


# -- members of the classic protocol -----------------------------------------------------------------------------------


def subscription(*topics: str, owned: Iterable[tuple[str, int]] = (), version: int = 3) -> bytes:
    names = sorted({topic for topic, _ in owned})
    message = ConsumerProtocolSubscription(
        topics=topics,
        owned_partitions=tuple(
            TopicPartition(topic=name, partitions=tuple(sorted(each for topic, each in owned if topic == name)))
            for name in names
        ),
    )
    return write_subscription(message, version)


@dataclass
class ClassicConsumer:
    """A client of the classic protocol with the cooperative assignor. In a classic group it may have to lead: then it
    gives itself nothing, for its test has other means.
    """

    shell: ConsumerShell
    topics: tuple[str, ...] = ("orders",)
    instance_id: str | None = None
    member_id: str = ""
    generation: int = -1
    owned: set[tuple[str, int]] = field(default_factory=set)
    joining: Waiting | None = None

    def join(self) -> "ClassicConsumer":
        self.joining = self.shell.join(
            self.member_id,
            instance_id=self.instance_id,
            protocols={"cooperative-sticky": subscription(*self.topics, owned=self.owned)},
        )
        if self.joining.response is None:
            self.shell.advance(0)
        response = self.joining.response
        if response is not None and response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
            return self.join()
        self.take_join()
        return self

    def take_join(self) -> None:
        if self.joining is not None and self.joining.response is not None:
            if self.joining.code is ErrorCode.NONE:
                self.member_id = self.joining.response.member_id
                self.generation = self.joining.response.generation_id
            elif self.joining.code is ErrorCode.UNKNOWN_MEMBER_ID:
                self.member_id = ""
                self.owned = set()

    def sync(self, assignments: dict[str, bytes] | None = None) -> ErrorCode:
        ticket = self.shell.sync(self.member_id, self.generation, assignments, instance_id=self.instance_id)
        if ticket.response is not None and ticket.code is ErrorCode.NONE:
            octets = ticket.response.assignment
            self.owned = {
                (topic.topic, partition)
                for topic in (read_assignment(octets).assigned_partitions if octets else ())
                for partition in topic.partitions
            }
        return ticket.code if ticket.response is not None else ErrorCode.NONE

    def heartbeat(self) -> ErrorCode:
        """Joins and syncs again if the response asks for it."""
        code = self.shell.heartbeat(self.member_id, self.generation, instance_id=self.instance_id)
        if code in (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION):
            self.join()
            self.sync()
        elif code is ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""
            self.owned = set()
            self.join()
            self.sync()
        return code

    @property
    def partitions(self) -> set[str]:
        return {f"{topic}-{partition}" for topic, partition in self.owned}
