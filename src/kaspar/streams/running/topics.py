"""The topics of a program: source topics must exist; output topics and internal topics are created.

N, the number of partitions of a sub-topology, is the maximum of its source topics' numbers of partitions and of the
number that repartition() requests. Its changelogs are created with N partitions, and determine N from then on: the
state of a key is in partition murmur2(key) % N. Source topics may have other numbers of partitions, because records are
assigned to their key's partition by a shuffle, not by their topic.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import ZERO_UUID
from kaspar.base.log import get_log
from kaspar.client.admin.creation import NewTopic, create_topics
from kaspar.client.admin.session import Admin
from kaspar.client.admin.topics import TopicDescription, describe_topics, list_topics
from kaspar.streams.errors import StreamsError
from kaspar.streams.running.config import StreamsConfig
from kaspar.streams.topology.plan import SubTopology, source_topics
from kaspar.streams.topology.topology import Topology

log = get_log(__name__)

REPARTITION_CONFIG = {
    "cleanup.policy": "delete",
    "message.timestamp.type": "CreateTime",
    "retention.ms": "-1",
    "segment.bytes": "52428800",
}
"""The configuration of Kafka's RepartitionTopicConfig."""


@dataclass(slots=True)
class TopicPlan:
    """The topics of a program: those that exist, and those to be created."""

    partitions: dict[int, int] = field(default_factory=dict)
    """N of each sub-topology, by sub-topology number."""
    counts: dict[str, int] = field(default_factory=dict)
    """The number of partitions of each topic, including those to be created."""
    new: dict[str, NewTopic] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    """The known topic ids. Brokers before Kafka 2.8 have none."""


def prepare_topics(topology: Topology, config: StreamsConfig) -> TopicPlan:
    """Check the topics of a program, and create those that are missing. Raises StreamsError."""
    connection = config.connection
    with Admin(connection.bootstrap_servers, security=connection.security.load()) as admin:
        existing = _existing(admin, topology, config)
        plan = planned(topology, config, {name: len(each.partitions) for name, each in existing.items()})
        for name, each in existing.items():
            _add_id(plan, name, each.topic_id)
        _create(admin, plan)
    return plan


def check_topics(topology: Topology, config: StreamsConfig) -> None:
    """Check the topics of a program, without creating any. Raises StreamsError.

    If no broker responds, it waits for one, as Kafka's clients do, and logs a warning at once.
    """
    connection = config.connection
    problems: list[str] = []

    def report(problem: OSError) -> None:
        if not problems:
            problems.append(f"No broker responds at {connection.bootstrap_servers} ({problem.strerror or problem})")
            log.warning(f"{problems[0]}: waiting for one.")

    with Admin(connection.bootstrap_servers, security=connection.security.load(), on_unreachable=report) as admin:
        try:
            existing = _existing(admin, topology, config)
        except Refused as refused:
            if problems and refused.code is ErrorCode.REQUEST_TIMED_OUT:
                raise StreamsError(f"{problems[0]}. Check bootstrap.servers.") from None
            raise
    planned(topology, config, {name: len(each.partitions) for name, each in existing.items()})


def matching_topics(names: Iterable[str], pattern: str, application_id: str) -> list[str]:
    """The topics that match a pattern, except for Kafka's and the program's own internal topics."""
    own = f"{application_id}-"
    return sorted(
        name
        for name in names
        if re.fullmatch(pattern, name)
        and not name.startswith("__")
        and not (name.startswith(own) and name.endswith(("-changelog", "-repartition")))
    )


def _existing(admin: Admin, topology: Topology, config: StreamsConfig) -> dict[str, TopicDescription]:
    """All existing topics that the program uses."""
    names = {*topology.source_topics, *_outputs(topology, config), *_internal(topology, config.application_id)}
    for sub_topology in topology.sub_topologies:
        for source in sub_topology.sources:
            if source.pattern is not None:
                names |= {*matching_topics(list_topics(admin), source.pattern, config.application_id)}
    existing = {}
    for name, found in describe_topics(admin, names).items():
        if isinstance(found, TopicDescription):
            existing[name] = found
        elif found.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise StreamsError(f"The topic {name} cannot be used: {found}")
    return existing


def planned(topology: Topology, config: StreamsConfig, existing: Mapping[str, int]) -> TopicPlan:
    """Plan the topics. Raises StreamsError if source topics are missing, or if the changelogs of a sub-topology have
    different numbers of partitions."""
    missing = sorted({*topology.source_topics} - existing.keys())
    if missing:
        raise StreamsError(
            f"These source topics do not exist: {', '.join(missing)}. Create them before starting the program."
        )
    plan = TopicPlan(counts=dict(existing))
    waiting = list(topology.sub_topologies)
    while waiting:
        ready = [each for each in waiting if _has_known_source(each, plan, config)]
        for sub_topology in ready or waiting:
            _plan_sub_topology(sub_topology, plan, config)
        waiting = [each for each in waiting if each.number not in plan.partitions]
    for name in (config.task_settings.dead_letter_topic, config.task_settings.late_topic):
        if name is not None and name not in plan.counts:
            plan.new[name] = NewTopic(name)
    return plan


def _has_known_source(sub_topology: SubTopology, plan: TopicPlan, config: StreamsConfig) -> bool:
    return bool(_source_counts(sub_topology, plan, config))


def _source_counts(sub_topology: SubTopology, plan: TopicPlan, config: StreamsConfig) -> list[int]:
    counts = []
    for source in sub_topology.sources:
        names = list(source_topics(source, config.application_id))
        if source.pattern is not None:
            names += matching_topics(plan.counts, source.pattern, config.application_id)
        counts += [plan.counts[name] for name in names if name in plan.counts]
    return counts


def _plan_sub_topology(sub_topology: SubTopology, plan: TopicPlan, config: StreamsConfig) -> None:
    counts = _source_counts(sub_topology, plan, config)
    if not counts:
        patterns = ", ".join(each.pattern for each in sub_topology.sources if each.pattern is not None)
        raise StreamsError(f"No topic matches the pattern {patterns}: at least one must exist when the program starts.")
    partitions = max([*counts, sub_topology.requested_partitions or 1])
    changelogs = {
        spec.changelog_topic(config.application_id): spec.changelog_config()
        for spec in sub_topology.stores
        if spec.is_logged
    }
    known = {name: plan.counts[name] for name in changelogs if name in plan.counts}
    if len({*known.values()}) > 1:
        named = ", ".join(f"{name} has {count}" for name, count in sorted(known.items()))
        raise StreamsError(
            f"The changelogs of one sub-topology must have the same number of partitions: {named}. Reset the "
            "application (kafka-streams-application-reset), or give it a new application.id."
        )
    if known:
        partitions = next(iter(known.values()))
    plan.partitions[sub_topology.number] = partitions
    for name, settings in changelogs.items():
        _add(plan, NewTopic(name, partitions, config.replication_factor, settings))
    for internal in sub_topology.internal_sinks:
        name = f"{config.application_id}-{internal.name}"
        count = internal.partitions or partitions
        _add(plan, NewTopic(name, count, config.replication_factor, REPARTITION_CONFIG))
    for sink in sub_topology.sinks:
        if isinstance(sink.topic, str) and not sink.internal:
            _add(plan, NewTopic(sink.topic, partitions, config.replication_factor))


def _add(plan: TopicPlan, topic: NewTopic) -> None:
    if topic.name not in plan.counts:
        plan.counts[topic.name] = topic.partitions
        plan.new[topic.name] = topic


def _outputs(topology: Topology, config: StreamsConfig) -> Iterable[str]:
    for sub_topology in topology.sub_topologies:
        yield from (sink.topic for sink in sub_topology.sinks if isinstance(sink.topic, str) and not sink.internal)
    for name in (config.task_settings.dead_letter_topic, config.task_settings.late_topic):
        if name is not None:
            yield name


def _internal(topology: Topology, application_id: str) -> Iterable[str]:
    for sub_topology in topology.sub_topologies:
        yield from (f"{application_id}-{each.name}" for each in sub_topology.internal_sinks)
        yield from (each.changelog_topic(application_id) for each in sub_topology.stores if each.is_logged)


def _create(admin: Admin, plan: TopicPlan) -> None:
    for name, created in create_topics(admin, list(plan.new.values())).items():
        if not isinstance(created, Refused):
            _add_id(plan, name, created)
        elif created.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
            raise StreamsError(f"The topic {name} cannot be created: {created}") from created
    unknown = [name for name in plan.new if plan.new[name].partitions < 0]
    for name, found in describe_topics(admin, unknown).items():
        if not isinstance(found, Refused):
            plan.counts[name] = len(found.partitions)


def _add_id(plan: TopicPlan, name: str, topic_id: UUID) -> None:
    if topic_id != ZERO_UUID:
        plan.ids[name] = str(topic_id)
