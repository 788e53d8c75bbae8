"""Which parts of a program's directory are outdated when it restarts: decisions only.

- Offsets of the group that were committed with other metadata than this history's are from another source: the
  application was reset (kafka-streams-application-reset), or ran in another folder. Then the history is over.
- A topic whose id is another than before was deleted and recreated. A re-partition topic ends the checkpoint of the
  sub-topology that reads it, and with it what is named by its batches; a changelog, or the topic of a global table,
  ends only the local state.
- A group without offsets is neither: offsets expire, and a checkpoint does not need them.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Self

from kaspar.base.ids import TopicPartition
from kaspar.client.offsets import CommittedOffset
from kaspar.streams.topology.plan import InternalSource, SubTopology, source_topics


@dataclass(frozen=True, slots=True)
class SubTopologyTopics:
    """The topics that what a sub-topology keeps depends on."""

    number: int
    sources: frozenset[str]
    """Internal ones: users' topics are the data source's to watch (failOnDataLoss)."""
    of_state: frozenset[str]
    """Its changelogs, and the topics of its global tables."""

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
    """Numbers of sub-topologies. Without its checkpoint the state of a sub-topology is outdated, too: versions of
    stores without a changelog are named by batches."""

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
    """Topics that were seen for the first time, or of which an id is unknown, are taken to be the same."""
    return frozenset(topic for topic, topic_id in now.items() if before.get(topic, topic_id) != topic_id)
