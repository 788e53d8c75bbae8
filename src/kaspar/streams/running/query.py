"""The streaming query of a sub-topology, on the driver: what Spark calls for each of its batches.

A batch is one Spark job: source, map side, shuffle, tasks. With exactly once its writes are published together when all
tasks have finished (kaspar.spark.batch); a batch that an earlier run has published is not run again, and its effects on
the state are in the changelogs.

A query is stopped between two batches. A batch that Spark begins after that was asked for waits for the stop, and has
done nothing.
"""

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from kaspar.base.ids import TopicPartition
from kaspar.spark.exactly_once.foreach_batch import batch
from kaspar.spark.writing.in_tasks import TaskProgram, run_at_least_once
from kaspar.streams.errors import StreamsError
from kaspar.streams.operators.processors import ProcessorNode
from kaspar.streams.running.config import StreamsConfig
from kaspar.streams.running.figures import Figures
from kaspar.streams.running.folder import BatchFacts, RunFolder
from kaspar.streams.running.global_tables import fixed_ends
from kaspar.streams.running.map_side import SOURCE_COLUMNS, MapPlan, map_function
from kaspar.streams.running.purging import Purger
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

    from kaspar.client import Client

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
        """Of the last batch."""
        self._config = config
        self._topics = topics
        self._sources = Sources(plan, config.application_id, config.offset_reset)
        self._folder = folder
        self._program = ShippedProgram.of(plan, config.task_settings)
        self.partitions = topics.partitions[plan.number]
        self.versions = Versions(
            {spec.name: spec.changelog_topic(config.application_id) for spec in plan.stores if spec.is_logged},
            self.partitions,
        )
        self._ticks = any(isinstance(node, ProcessorNode) for node in plan.nodes)
        self._starting = self._sources.options(topics.counts, committed)
        self.figures = Figures()
        self._is_running = self._is_stopping = self._is_parked = False
        self._last_batch: int | None = None
        self._tasks = 1
        self.query: StreamingQuery | None = None
        self._kept_client: Client | None = None
        internal = [each for each in plan.sources if isinstance(each, InternalSource)]
        self._purger = Purger(
            {topic for each in internal for topic in source_topics(each, config.application_id)},
            config.connection.client,
        )

    # --- the query ----------------------------------------------------------------------------------------------------

    def start(self, session: "SparkSession") -> "StreamingQuery":
        """Raises what Spark raises if the query cannot start."""
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
        return {
            **config.read_options,
            **self._starting,
            "columns": SOURCE_COLUMNS,
            "kafka.isolation.level": "read_committed",
            "kafka.group.id": config.application_id,
            "commitGroupOffsets": "true",
            "commitGroupMetadata": self._folder.metadata,
            "maxOffsetsPerTrigger": str(config.max_offsets),
            "maxBytesPerTrigger": str(config.max_bytes),
        }

    # --- stopping -----------------------------------------------------------------------------------------------------

    def request_stop(self) -> None:
        """No further batch begins. Returns at once."""
        self._is_stopping = True

    def stop_if_between_batches(self) -> bool:
        """Whether the query has ended. Called again and again, after request_stop()."""
        query = self.query
        if query is None or not query.isActive:
            return True
        if self._is_running or not (self._is_parked or self._is_committed() or not query.status["isTriggerActive"]):
            return False
        query.stop()
        if self._kept_client is not None:
            self._kept_client.close()
        return True

    def _is_committed(self) -> bool:
        """Whether Spark has recorded the last batch that ran. It does so after the batch function has returned."""
        progress = None if self.query is None else self.query.lastProgress
        return progress is not None and self._last_batch is not None and int(progress["batchId"]) >= self._last_batch

    def _park(self, rows: "DataFrame") -> None:
        """Wait for stop(), which interrupts the thread of the query. This thread of the JVM is that one."""
        self._is_parked = True
        java = rows.sparkSession.sparkContext._jvm
        assert java is not None, "there is a JVM"
        java.java.lang.Thread.sleep(_PARKED_MS)
        raise StreamsError("The query was to be stopped, and was not.")

    # --- batches ------------------------------------------------------------------------------------------------------

    def _run_batch(self, rows: "DataFrame", batch_id: int) -> None:
        """What Spark calls."""
        self._is_running = True
        try:
            if self._is_stopping:
                self._is_running = False
                self._park(rows)
            self._last_batch = batch_id
            self._purger.completed(None if self.query is None else self.query.lastProgress)
            if self._config.is_exactly_once:
                self._run_exactly_once(rows, batch_id)
            else:
                self._run_at_least_once(rows, batch_id)
        finally:
            self._is_running = False

    def _run_exactly_once(self, rows: "DataFrame", batch_id: int) -> None:
        results: list[bytes] | None = None
        with batch(batch_id, options=self._config.write_options) as block:
            if block.is_published:
                self.versions.forget()
            else:
                results = block.run(*self._job(rows, batch_id))
        if results is None:
            self.versions.forget()
        else:
            self._finished(results)

    def _run_at_least_once(self, rows: "DataFrame", batch_id: int) -> None:
        self._finished(run_at_least_once(*self._job(rows, batch_id), options=self._config.write_options))

    def _finished(self, results: Sequence[bytes]) -> None:
        """The batch is published."""
        self.reports = [TaskReport.decode(result) for result in results if result]
        self.versions.advance(self.reports)
        self.figures.add(self.reports)

    def _job(self, rows: "DataFrame", batch_id: int) -> "tuple[DataFrame, TaskProgram]":
        config, counts = self._config, self._topics.counts
        if not self.plan.is_stateful:
            return rows, StatelessProgram(self._program, config.connection, counts)
        self._make_sure_of_versions()
        facts = self._facts(batch_id)
        topics = self._source_topics()
        mapped = rows.mapInArrow(map_function(MapPlan(self._program, topics, self.partitions, counts)), SPARK_SCHEMA)
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

    def _facts(self, batch_id: int) -> BatchFacts:
        """What a repeated batch must see again. It is written down if the result may depend on it."""
        tables = self.plan.global_tables
        if not tables and not self._ticks:
            return BatchFacts(batch_id, _now_ms(), {})
        known = self._folder.batch_facts(self.plan.number)
        if known is not None and known.batch_id == batch_id:
            return known
        ends = fixed_ends(self._client(), tables, self._topics.counts) if tables else {}
        facts = BatchFacts(batch_id, _now_ms(), ends)
        self._folder.write_batch_facts(self.plan.number, facts)
        return facts

    def _client(self) -> "Client":
        """Kept for the life of the query, and used by its thread alone."""
        if self._kept_client is None:
            self._kept_client = self._config.connection.client()
        return self._kept_client

    def _make_sure_of_versions(self) -> None:
        if not self.versions.is_known:
            self.versions.read(self._client())

    def _source_topics(self) -> tuple[str, ...]:
        """A topic that matches a pattern may be new."""
        if not self._sources.has_patterns:
            return self._sources.topics(())
        found = self._client().refresh_metadata(None).topics
        return self._sources.topics([topic.name for topic in found if topic.name is not None])


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _ticks(session: "SparkSession", like: "DataFrame") -> "DataFrame":
    """A row each second, so that there is a batch although nothing arrives. All of its columns are null."""
    ticks = session.readStream.format("rate").option("rowsPerSecond", 1).load()
    return ticks.selectExpr(
        *(f"cast(null as {each.dataType.simpleString()}) as {each.name}" for each in like.schema.fields)
    )
