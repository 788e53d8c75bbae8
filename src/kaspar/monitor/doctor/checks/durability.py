"""Settings with which records are lost when a broker or a disk fails."""

from collections.abc import Iterator
from typing import Final

from kaspar.base.sentences import counted, some
from kaspar.client.admin.topics import TopicDescription
from kaspar.monitor.doctor.check import check
from kaspar.monitor.doctor.finding import Fault, Severity
from kaspar.monitor.doctor.looks import Looks
from kaspar.monitor.doctor.observation import OFFSETS_TOPIC, SCHEMAS_TOPIC, TRANSACTIONS_TOPIC, Observation
from kaspar.monitor.doctor.plans import WANTED_REPLICAS

_INTERNAL: Final = (OFFSETS_TOPIC, TRANSACTIONS_TOPIC, SCHEMAS_TOPIC)


@check(
    "one-replica",
    Severity.WARNING,
    title="Topics have one replica in a cluster of several brokers",
    why="If the broker or its disk fails, their records are unavailable or lost.",
    remedy="Add replicas.",
)
def one_replica(looks: Looks) -> Iterator[Fault]:
    if _brokers(looks.last) < 2:
        return
    topics = [each.name for each in _topics(looks.last) if each.name not in _INTERNAL and _replicas(each) == 1]
    if topics:
        detail = f"{counted(len(topics), 'topic')} of {len(looks.last.topics)}: {some(topics)}."
        resource = f"topic {topics[0]}" if len(topics) == 1 else "topics"
        yield Fault(resource, detail, looks.access.plan("replication"))


@check(
    "internal-topic-replicas",
    Severity.PROBLEM,
    title="An internal topic has too few replicas",
    why="If its broker fails, groups cannot commit or join, or transactions cannot end; if its disk fails, committed "
    "offsets or schemas are lost.",
    remedy="Add replicas.",
)
def internal_topic_replicas(looks: Looks) -> Iterator[Fault]:
    brokers = _brokers(looks.last)
    for topic in _topics(looks.last):
        if topic.name in _INTERNAL and _replicas(topic) < min(WANTED_REPLICAS, brokers) and _replicas(topic) < 2:
            detail = f"It has {counted(_replicas(topic), 'replica')} in a cluster of {brokers} brokers."
            yield Fault(f"topic {topic.name}", detail, looks.access.plan("replication"))


@check(
    "min-isr-one",
    Severity.WARNING,
    title="min.insync.replicas is 1 for topics with several replicas",
    why="A write with acks=all can be acknowledged when only the leader has it. If that broker fails, the write is "
    "lost.",
    remedy="Set min.insync.replicas to one less than the number of replicas.",
)
def min_isr_one(looks: Looks) -> Iterator[Fault]:
    last = looks.last
    topics = [
        each.name
        for each in _topics(last)
        if _replicas(each) >= WANTED_REPLICAS and last.number(each.name, "min.insync.replicas") == 1
    ]
    if topics:
        detail = f"{counted(len(topics), 'topic')} with three replicas or more: {some(topics)}."
        words = ("topic", "alter", *topics[:_MOST_TOPICS], "--set", "min.insync.replicas=2")
        is_default = last.broker_setting("min.insync.replicas") == "1"
        if is_default and len(topics) > _MOST_TOPICS:
            words = ("config", "set", "broker", "min.insync.replicas=2")
        yield Fault("topics" if len(topics) > 1 else f"topic {topics[0]}", detail, looks.access.kaspar(*words))


_MOST_TOPICS: Final = 20
"""The maximum number of topics in one command."""


@check(
    "unclean-leader-election",
    Severity.WARNING,
    title="Unclean leader election is on",
    why="A replica that is behind may become the leader, and acknowledged records are silently lost.",
    remedy="Turn it off, unless availability matters more than the records.",
)
def unclean_leader_election(looks: Looks) -> Iterator[Fault]:
    name = "unclean.leader.election.enable"
    if looks.last.broker_setting(name) == "true":
        command = looks.access.kaspar("config", "set", "broker", f"{name}=false")
        yield Fault("all brokers", "It is the default for topics that do not override it.", command)
        return
    topics = [each.name for each in _topics(looks.last) if looks.last.topic_setting(each.name, name) == "true"]
    if topics:
        command = looks.access.kaspar("topic", "alter", *topics[:_MOST_TOPICS], "--unset", name)
        detail = f"{counted(len(topics), 'topic')}: {some(topics)}."
        yield Fault("topics" if len(topics) > 1 else f"topic {topics[0]}", detail, command)


@check(
    "default-replication",
    Severity.WARNING,
    title="New topics get too few replicas by default",
    why="Topics created without an explicit number of replicas, including automatically created ones, are lost with "
    "one broker; so are offsets and transactions if their topics are created this way.",
    remedy="Set it in each broker's properties file and restart the brokers.",
)
def default_replication(looks: Looks) -> Iterator[Fault]:
    last = looks.last
    if _brokers(last) < WANTED_REPLICAS:
        return
    topics = {
        "offsets.topic.replication.factor": OFFSETS_TOPIC,
        "transaction.state.log.replication.factor": TRANSACTIONS_TOPIC,
    }
    low = [
        f"{name}={value}"
        for name in ("default.replication.factor", *topics)
        if (value := last.broker_setting(name)) == "1" and topics.get(name) not in last.topics
    ]
    if low:
        detail = f"{some(low)}, in a cluster of {_brokers(last)} brokers."
        yield Fault(
            "all brokers", detail, looks.access.kaspar("config", "list", "broker/" + str(min(last.live_brokers)))
        )


@check(
    "registry-topic-not-compacted",
    Severity.PROBLEM,
    title="The topic of the schema registry is not compacted",
    why="Retention will delete schemas, and records that refer to them can no longer be read.",
    remedy="Set its cleanup.policy to compact.",
)
def registry_topic_not_compacted(looks: Looks) -> Iterator[Fault]:
    policy = looks.last.topic_setting(SCHEMAS_TOPIC, "cleanup.policy")
    if policy is not None and policy != "compact":
        command = looks.access.kaspar("topic", "alter", SCHEMAS_TOPIC, "--set", "cleanup.policy=compact")
        yield Fault(f"topic {SCHEMAS_TOPIC}", f"Its cleanup.policy is {policy}.", command)


def _brokers(observation: Observation) -> int:
    return len(observation.live_brokers)


def _topics(observation: Observation) -> list[TopicDescription]:
    return [observation.topics[name] for name in sorted(observation.topics) if observation.topics[name].partitions]


def _replicas(topic: TopicDescription) -> int:
    return min(len(each.replicas) for each in topic.partitions)
