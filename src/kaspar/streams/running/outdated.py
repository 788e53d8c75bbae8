"""Decides which parts of a program's directory are outdated when it restarts. No I/O.

- If the group has offsets with other metadata than this history's, the application was reset
  (kafka-streams-application-reset) or has run in another folder. The whole directory is outdated.
- A topic whose id has changed was deleted and recreated. If it is a repartition topic, the checkpoint of the
  sub-topology that reads it is outdated, and everything that is named by its batches; if it is a changelog or the topic
  of a global table, only the local state is.
- A group without offsets makes nothing outdated: offsets expire, and a checkpoint does not need them.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Self

from kaspar.base.ids import TopicPartition
from kaspar.client.offsets import CommittedOffset
from kaspar.streams.topology.plan import InternalSource, SubTopology, source_topics


@dataclass(frozen=True, slots=True)
class SubTopologyTopics:
    """The topics that the checkpoint and the state of a sub-topology depend on."""

    number: int
    sources: frozenset[str]
    """The internal source topics. The data source watches users' topics itself (failOnDataLoss)."""
    of_state: frozenset[str]
    """The changelogs, and the topics of the global tables."""

    @classmethod
    def of(cls, plan: SubTopology, application_id: str) -> Self:
        internal = [source for source in plan.sources if isinstance(source, InternalSource)]
        changelogs = {spec.changelog_topic(application_id) for spec in plan.stores if spec.is_logged}
        return cls(
            plan.number,
            frozenset(topic for source in internal for topic in source_topics(source, application_id)),
            frozenset(changelogs | {topic for table in plan.global_tables for topic in table.source.topics}),
        )


@dataclass(frozen=True, slots=True)
class Outdated:
    """The numbers of sub-topologies with an outdated checkpoint or state. If the checkpoint is outdated, so is the
    state, because versions of stores without a changelog are named by batches."""

    checkpoints: frozenset[int]
    states: frozenset[int]

    @classmethod
    def of(cls, topics: Collection[SubTopologyTopics], recreated: Collection[str]) -> Self:
        checkpoints = frozenset(each.number for each in topics if not each.sources.isdisjoint(recreated))
        states = frozenset(each.number for each in topics if not each.of_state.isdisjoint(recreated))
        return cls(checkpoints, states | checkpoints)


def is_of_somebody_else(committed: Mapping[TopicPartition, CommittedOffset], metadata: str) -> bool:
    return any(each.metadata != metadata for each in committed.values())


def recreated_topics(before: Mapping[str, str], now: Mapping[str, str]) -> frozenset[str]:
    """The topics whose ids have changed. New topics and topics with an unknown id are not among them."""
    return frozenset(topic for topic, topic_id in now.items() if before.get(topic, topic_id) != topic_id)
