"""The streaming query of a sub-topology, on the driver, and the function that Spark calls for each batch.

A batch is one Spark job: source, map side, shuffle, tasks. With exactly once, its writes are published together when
all tasks have finished (kaspar.spark.batch). A batch that an earlier run has published is not run again: its effects on
the state are in the changelogs.

A query is stopped between two batches. If Spark starts a batch after a stop was requested, the batch waits for the stop
without doing anything.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import Refused
from kaspar.base.ids import TopicPartition
from kaspar.client.admin.records import delete_records
from kaspar.client.admin.session import Admin
from kaspar.client.offsets import fetch_committed
from kaspar.spark.exactly_once.foreach_batch import batch
from kaspar.spark.writing.in_tasks import TaskProgram, run_at_least_once
from kaspar.streams.errors import StreamsError
from kaspar.streams.operators.processors import ProcessorNode
from kaspar.streams.running.config import StreamsConfig
from kaspar.streams.running.figures import Figures
from kaspar.streams.running.folder import BatchFacts, RunFolder
from kaspar.streams.running.global_tables import fixed_ends
from kaspar.streams.running.map_side import SOURCE_COLUMNS, MapPlan, map_function, passed_on, passes_unread
from kaspar.streams.running.predecessors import Note, query_name
from kaspar.streams.running.purging import RepartitionPurge
from kaspar.streams.running.reports import TaskReport
from kaspar.streams.running.rows import SPARK_SCHEMA
from kaspar.streams.running.shipped import ShippedProgram
from kaspar.streams.running.sources import Sources
from kaspar.streams.running.stateless import StatelessProgram
from kaspar.streams.running.task_program import BatchPlan, StatefulProgram
from kaspar.streams.running.topics import TopicPlan
from kaspar.streams.running.versions import Versions
from kaspar.streams.topology.plan import InternalSource, SubTopology, source_topics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_PARKED_MS: Final = 600_000


class SubTopologyQuery:
    def __init__(
        self,
        plan: SubTopology,
        config: StreamsConfig,
        topics: TopicPlan,
        folder: RunFolder,
        committed: Mapping[TopicPartition, int],
    ) -> None:
        """`committed` are the offsets of the program's group, which are used if the query has no checkpoint yet."""
        self.plan = plan
        self.reports: list[TaskReport] = []
        """The reports of the last batch."""
        self._config = config
        self._topics = topics
        self._sources = Sources(plan, config.application_id, config.offset_reset)
        self._folder = folder
        self._name = query_name(config.application_id, plan.number) if folder.has_named_queries else None
        self._program = ShippedProgram.of(plan, config.task_settings)
        self.partitions = topics.partitions[plan.number]
        self.versions = Versions(
            {spec.name: spec.changelog_topic(config.application_id) for spec in plan.stores if spec.is_logged},
            self.partitions,
        )
        self._passes_unread = plan.is_stateful and passes_unread(plan)
        self._ticks = any(isinstance(node, ProcessorNode) for node in plan.nodes)
        self._starting = self._sources.options(topics.counts, committed)
        self.figures = Figures()
        internal = [source for source in plan.sources if isinstance(source, InternalSource)]
        self._purge = RepartitionPurge(
            [topic for source in internal for topic in source_topics(source, config.application_id)],
            self._committed_offsets,
            self._delete_records,
        )
        self._is_running = self._is_stopping = self._is_parked = False
        self._last_batch: int | None = None
        self._tasks = 1
        self.query: StreamingQuery | None = None

    # --- the query ----------------------------------------------------------------------------------------------------

    def start(self, session: "SparkSession") -> "StreamingQuery":
        """Start the query. Raises Spark's exception if it cannot start."""
        self._look_up_versions()
        self._tasks = max(1, min(self.partitions, session.sparkContext.defaultParallelism))
        rows = session.readStream.format("kaspar").options(**self._read_options()).load()
        if self._ticks:
            rows = rows.unionByName(_ticks(session, rows))
        self.query = (
            rows.writeStream.queryName(f"{self._config.application_id}-{self.plan.number}")
            .foreachBatch(self._run_batch)
            .option("checkpointLocation", str(self._folder.checkpoint(self.plan.number)))
            .trigger(processingTime=f"{self._config.trigger_ms} milliseconds")
            .start()
        )
        return self.query

    def _read_options(self) -> dict[str, str]:
        config = self._config
        hashed = {"columns": f"{SOURCE_COLUMNS},keyPartition", "keyPartitions": str(self.partitions)}
        return {
            **config.read_options,
            **self._starting,
            **(hashed if self._passes_unread else {"columns": SOURCE_COLUMNS}),
            "kafka.isolation.level": "read_committed",
            "kafka.group.id": config.application_id,
            "commitGroupOffsets": "true",
            "commitGroupMetadata": self._folder.metadata,
            "failOnDataLoss": str(config.fail_on_data_loss).lower(),
            "maxOffsetsPerTrigger": str(config.max_offsets),
            "maxBytesPerTrigger": str(config.max_bytes),
            "limitByTimestamp": str(self.plan.is_stateful and self._sources.are_several).lower(),
        }

    # --- stopping -----------------------------------------------------------------------------------------------------

    def request_stop(self) -> None:
        """Prevent further batches, without waiting for the current one."""
        self._is_stopping = True

    def stop_if_between_batches(self) -> bool:
        """Stop the query if no batch is running. Returns whether it has ended. Polled after request_stop()."""
        query = self.query
        if query is None or not query.isActive:
            return True
        if self._is_running or not (self._is_parked or self._is_committed() or not query.status["isTriggerActive"]):
            return False
        query.stop()
        return True

    def _is_committed(self) -> bool:
        """Whether Spark has recorded the last batch, which it does after the batch function has returned."""
        progress = None if self.query is None else self.query.lastProgress
        return progress is not None and self._last_batch is not None and int(progress["batchId"]) >= self._last_batch

    def _park(self, rows: "DataFrame") -> None:
        """Wait for stop(), which interrupts the JVM thread of the query. The sleep runs in that thread."""
        self._is_parked = True
        java = rows.sparkSession.sparkContext._jvm
        assert java is not None, "there is a JVM"
        java.java.lang.Thread.sleep(_PARKED_MS)
        raise StreamsError("The query could not be stopped.")

    # --- batches ------------------------------------------------------------------------------------------------------

    def _run_batch(self, rows: "DataFrame", batch_id: int) -> None:
        """The batch function, which Spark calls."""
        self._is_running = True
        try:
            if self._is_stopping:
                self._is_running = False
                self._park(rows)
            self._last_batch = batch_id
            if self._config.is_exactly_once:
                self._run_exactly_once(rows, batch_id)
            else:
                self._run_at_least_once(rows, batch_id)
        finally:
            self._is_running = False

    def _run_exactly_once(self, rows: "DataFrame", batch_id: int) -> None:
        results: list[bytes] | None = None
        with batch(batch_id, query=self._name, options=self._config.write_options) as block:
            if block.is_published:
                self.versions.forget()
            else:
                offsets = self._folder.batch_offsets(self.plan.number, batch_id)
                block.note = Note(self._folder.run_id, offsets).encode()
                results = block.run(*self._job(rows, batch_id))
        if results is None:
            self.versions.forget()
            self._look_up_versions()
        else:
            self._finished(results)

    def _run_at_least_once(self, rows: "DataFrame", batch_id: int) -> None:
        self._finished(run_at_least_once(*self._job(rows, batch_id), options=self._config.write_options))

    def _finished(self, results: Sequence[bytes]) -> None:
        """Called when a batch is published."""
        self.reports = [TaskReport.decode(result) for result in results if result]
        self.versions.advance(self.reports)
        self._look_up_versions()
        self.figures.add(self.reports)
        self._purge.after_batch()

    def _job(self, rows: "DataFrame", batch_id: int) -> "tuple[DataFrame, TaskProgram]":
        config, counts = self._config, self._topics.counts
        if not self.plan.is_stateful:
            return rows, StatelessProgram(self._program, config.connection, counts)
        self._make_sure_of_versions()
        facts = self._facts(batch_id)
        topics = self._source_topics()
        if self._passes_unread:
            mapped = passed_on(rows, self.plan, config.application_id, topics)
        else:
            map_plan = MapPlan(self._program, topics, self.partitions, counts)
            mapped = rows.mapInArrow(map_function(map_plan), SPARK_SCHEMA)
        plan = BatchPlan(
            program=self._program,
            connection=config.connection,
            topics=topics,
            counts=counts,
            state_dir=str(self._folder.state(self.plan.number)),
            partitions=self.partitions,
            tasks=self._tasks,
            batch_id=batch_id,
            wall_clock_ms=facts.wall_clock_ms,
            ticks=self._ticks,
            ends=self.versions.ends,
            meta=self.versions.meta,
            global_dir=str(self._folder.state(self.plan.number) / "global"),
            global_ends=facts.global_ends,
        )
        return mapped.repartitionById(self._tasks, "logical"), StatefulProgram(plan)

    def _committed_offsets(self) -> dict[TopicPartition, int]:
        with self._config.connection.client() as client:
            found = fetch_committed(client, self._config.application_id)
        return {where: each.offset for where, each in found.items()}

    def _delete_records(self, before: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int | Refused]:
        connection = self._config.connection
        with Admin(connection.bootstrap_servers, security=connection.security.load()) as admin:
            return delete_records(admin, before)

    def _facts(self, batch_id: int) -> BatchFacts:
        """The facts of a batch, stored if its result may depend on them, so that a repeated batch gets them again."""
        tables = self.plan.global_tables
        if not tables and not self._ticks:
            return BatchFacts(batch_id, _now_ms(), {})
        known = self._folder.batch_facts(self.plan.number)
        if known is None or known.batch_id != batch_id:
            known = BatchFacts(batch_id, _now_ms(), {})
        facts = self._with_ends(known)
        self._folder.write_batch_facts(self.plan.number, facts)
        return facts

    def _with_ends(self, facts: BatchFacts) -> BatchFacts:
        """Fix the end offsets that are not fixed yet. In a repeated batch, these are of global tables that the program
        did not have before, and of topics that were recreated."""
        missing = [
            table
            for table in self.plan.global_tables
            if any(topic not in facts.global_ends for topic in table.source.topics)
        ]
        if not missing:
            return facts
        with self._config.connection.client() as client:
            ends = fixed_ends(client, missing, self._topics.counts)
        return replace(facts, global_ends={**facts.global_ends, **ends})

    def _make_sure_of_versions(self) -> None:
        if not self.versions.is_known:
            with self._config.connection.client() as client:
                self.versions.read(client)

    def _look_up_versions(self) -> None:
        """Look up the current versions if they are unknown, so that the stores can be read before the next batch."""
        if self.plan.stores and not self.versions.is_known:
            with self._config.connection.client() as client:
                self.versions.look_up(client)

    def _source_topics(self) -> tuple[str, ...]:
        """All source topics. Patterns are evaluated for each batch, because there may be new topics that match."""
        if not self._sources.has_patterns:
            return self._sources.topics(())
        with self._config.connection.client() as client:
            found = client.refresh_metadata(None).topics
        return self._sources.topics([topic.name for topic in found if topic.name is not None])


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _ticks(session: "SparkSession", like: "DataFrame") -> "DataFrame":
    """A row per second with null in all columns, so that batches run even if no record arrives."""
    ticks = session.readStream.format("rate").option("rowsPerSecond", 1).load()
    return ticks.selectExpr(
        *(f"cast(null as {each.dataType.simpleString()}) as {each.name}" for each in like.schema.fields)
    )
