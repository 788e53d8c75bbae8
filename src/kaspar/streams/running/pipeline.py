"""A streams program as a Pipeline, which kaspar.pipelines starts, monitors, restarts and stops."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from kaspar.base.ids import TopicPartition
from kaspar.client.cluster import Client
from kaspar.client.offsets import CommittedOffset, commit_offsets, fetch_committed, list_offsets
from kaspar.pipelines.pipeline import PipelineProgress
from kaspar.pipelines.queries import progress_of, wait_for
from kaspar.streams.errors import StreamsError
from kaspar.streams.running.config import StreamsConfig
from kaspar.streams.running.folder import RunFolder
from kaspar.streams.running.local_stores import LocalStore
from kaspar.streams.running.outdated import SubTopologyTopics
from kaspar.streams.running.predecessors import Predecessors, furthest, query_name
from kaspar.streams.running.query import SubTopologyQuery
from kaspar.streams.running.sources import Sources, in_range
from kaspar.streams.running.topics import TopicPlan, check_topics, prepare_topics
from kaspar.streams.topology.topology import Topology

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_PAUSE_S: Final = 0.01
_SESSION: Final = {
    # The program chooses the number of tasks, and the plan is always the same.
    "spark.sql.adaptive.enabled": "false",
}


class StreamsPipeline:
    """Runs one query for each sub-topology."""

    def __init__(self, topology: Topology, config: StreamsConfig) -> None:
        self.name = config.application_id
        self.queries: Sequence[StreamingQuery] = ()
        self.sub_topologies: Sequence[SubTopologyQuery] = ()
        self.folder = RunFolder(config.state_dir)
        self._topology = topology
        self._config = config

    def check(self) -> None:
        """Raises StreamsError if the program cannot start, before a Spark session is created, which takes seconds."""
        self.folder.create()
        check_topics(self._topology, self._config)

    def start(self, session: "SparkSession") -> None:
        from kaspar.spark.running.sessions import register

        config = self._config
        topics = prepare_topics(self._topology, config)
        plans = self._topology.sub_topologies
        offsets = self.open_folder(topics)
        own = session.newSession()
        for name, value in {**_SESSION, **config.spark}.items():
            if own.conf.isModifiable(name):
                own.conf.set(name, value)
        register(own)
        self.sub_topologies = [SubTopologyQuery(plan, config, topics, self.folder, offsets) for plan in plans]
        self.queries = ()
        for each in self.sub_topologies:
            self.queries = (*self.queries, each.start(own))

    def open_folder(self, topics: TopicPlan) -> dict[TopicPartition, int]:
        """Open the folder of the program. Returns the offsets at which queries without a checkpoint start.

        These offsets are committed with this history's metadata before anything is processed. Otherwise a restart after
        a crash would take offsets with other metadata for another reset, and could not distinguish a deleted group from
        one that has not committed yet.
        """
        config, plans = self._config, self._topology.sub_topologies
        sources = [Sources(plan, config.application_id, config.offset_reset) for plan in plans]
        read_by = {plan.number: each.topics(topics.counts) for plan, each in zip(plans, sources, strict=True)}
        read = {topic for each in read_by.values() for topic in each}
        own = [SubTopologyTopics.of(plan, config.application_id) for plan in plans]
        watched = {topic for each in own for topic in each.sources | each.of_state}
        ids = {topic: topic_id for topic, topic_id in topics.ids.items() if topic in watched}
        with config.connection.client() as client:
            committed = fetch_committed(client, config.application_id)
            committed = {where: offset for where, offset in committed.items() if where.topic in read}
            kept = self.folder.open(committed, own, ids, read_by)
            new = [plan.number for plan in plans if not self.folder.checkpoint(plan.number).exists()]
            predecessors = Predecessors(client, self._names_of(new))
            notes = predecessors.take_over()
            run = self.folder.committed_by(committed)
            offsets = in_range(
                client,
                furthest(kept, notes, run, self.folder.recreated),
                unread_topics={topic for number in new for topic in read_by[number]},
                fail_on_data_loss=config.fail_on_data_loss,
            )
            for plan, each in zip(plans, sources, strict=True):
                if plan.number in new:
                    found = list_offsets(client, each.unset(topics.counts, offsets))
                    offsets |= {where: position.offset for where, position in found.items()}
            self._commit(client, committed, offsets)
            predecessors.release()
            return offsets

    def _names_of(self, sub_topologies: Sequence[int]) -> list[str]:
        if not (self._config.is_exactly_once and self.folder.has_named_queries):
            return []
        return [query_name(self._config.application_id, number) for number in sub_topologies]

    def _commit(
        self,
        client: Client,
        committed: Mapping[TopicPartition, CommittedOffset],
        offsets: Mapping[TopicPartition, int],
    ) -> None:
        metadata = self.folder.metadata
        changed = {
            where: offset
            for where, offset in offsets.items()
            if (before := committed.get(where)) is None or (before.offset, before.metadata) != (offset, metadata)
        }
        refused = commit_offsets(client, self._config.application_id, changed, metadata=metadata) if changed else {}
        for where, code in refused.items():
            raise StreamsError(f"The offset of {where} cannot be committed: {code.name}")

    def stores(self) -> dict[str, LocalStore]:
        """The stores of the program after the last published batches; none before it was started."""
        return {
            spec.name: LocalStore(
                spec.name,
                each.plan,
                self._config,
                each.versions,
                self.folder.state(each.plan.number),
                each.partitions,
            )
            for each in self.sub_topologies
            for spec in each.plan.stores
        }

    def wait(self, timeout_s: float) -> bool:
        return wait_for(self.queries, timeout_s)

    def stop(self, timeout_s: float) -> None:
        until = time.monotonic() + timeout_s
        waiting = list(self.sub_topologies)
        for each in waiting:
            each.request_stop()
        while waiting and time.monotonic() < until:
            waiting = [each for each in waiting if not each.stop_if_between_batches()]
            if waiting:
                time.sleep(_PAUSE_S)

    def describe(self) -> str:
        return self._topology.describe()

    def progress(self) -> PipelineProgress:
        figures = [each.figures for each in self.sub_topologies]
        times = [each.stream_time_ms for each in figures if each.stream_time_ms is not None]
        return replace(
            progress_of(self.queries),
            rows=sum(each.records for each in figures),
            written=sum(each.written for each in figures),
            dropped=dict(sum((each.dropped for each in figures), Counter())),
            state_bytes=sum(each.state_bytes for each in figures),
            stream_time_ms=min(times) if times else None,
        )
