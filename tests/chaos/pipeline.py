"""Consume-transform-produce at work, to be disturbed: feeders, a group of processors, readers of what becomes visible.

with PipelineRun(broker.bootstrap, folder, rng, "consumer") as run:
    run.wait_for_progress()
    broker.kill(); broker.start()
    history = run.finish()
assert check(history) == []
"""

import random
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka.admin import AdminClient, NewTopic

from kaspar.client import Client
from kaspar.client.coordinators import CoordinatorKind, request_coordinator
from kaspar.protocol.isolation_level import READ_COMMITTED
from kaspar.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from kaspar.security.client import ClientSecurity
from tests.chaos.actors.feeder import FeederSettings
from tests.chaos.actors.processor import FENCED, ProcessorSettings
from tests.chaos.history import OFFSETS_TOPIC, Fate, History, Logs, Pipeline, read_journals, read_logs
from tests.chaos.lives import Lives, Role
from tests.chaos.readers import RawReader, StockReader
from tests.peers.raw_client import LATEST
from tests.peers.raw_offsets import FETCH_BY_NAME

PIPELINE = Pipeline("in", "out", "processors")
PAUSE_SECONDS = 0.01
CREATE_SECONDS = 60
PROGRESS_SECONDS = 60.0

# One broker, little to load, and timeouts that a test can wait for.
COORDINATION = {
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "3",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "500",
    "group.consumer.session.timeout.ms": "2000",
    "group.consumer.min.session.timeout.ms": "500",
    "group.consumer.heartbeat.interval.ms": "200",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.assignment.interval.ms": "0",
}


class PipelineRun:
    def __init__(
        self,
        bootstrap: str,
        folder: Path,
        rng: random.Random,
        strategy: str,
        *,
        partitions: int = 4,
        processors: int = 3,
        feeders: int = 2,
        configs: dict[str, str] | None = None,
        client: dict[str, str | int] | None = None,
        security: ClientSecurity | None = None,
        leaders_change: bool = False,
        pause_seconds: float = PAUSE_SECONDS,
    ) -> None:
        """`client`: more settings of the stock clients; `security`: of those that look on. `leaders_change`: it is a
        cluster, whose brokers may fail."""
        self.bootstrap = bootstrap
        self.lives = Lives(folder)
        self.partitions = partitions
        self._rng = rng
        self._strategy = strategy
        self._configs = configs or {}
        self._client = client or {}
        self._security = security
        self._pause_seconds = pause_seconds
        self.feeders = [f"feeder-{number}" for number in range(feeders)]
        self.processors = [f"processor-{number}" for number in range(processors)]
        where = (folder, bootstrap, PIPELINE.target, partitions)
        self.stock_reader = StockReader("stock-reader", *where, client=self._client)
        self.raw_reader = RawReader("raw-reader", *where, security=security, leaders_change=leaders_change)

    def __enter__(self) -> Self:
        topics = [NewTopic(name, self.partitions, config=self._configs) for name in (PIPELINE.source, PIPELINE.target)]
        admin = AdminClient({"bootstrap.servers": self.bootstrap, **self._client})
        for created in admin.create_topics(topics).values():
            created.result(CREATE_SECONDS)
        self.stock_reader.__enter__()
        self.raw_reader.__enter__()
        try:
            for name in self.feeders:
                self.lives.add(Role(name, "tests.chaos.actors.feeder", self._feeder))
            for name in self.processors:
                self.lives.add(Role(name, "tests.chaos.actors.processor", self._processor, may_end_with=(FENCED,)))
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.lives.kill_all()
        self.stock_reader.__exit__(kind, error, traceback)
        self.raw_reader.__exit__(kind, error, traceback)

    def _feeder(self, actor: str) -> FeederSettings:
        return FeederSettings(
            actor=actor,
            journals=str(self.lives.folder),
            bootstrap=self.bootstrap,
            seed=self._rng.randrange(1 << 30),
            client=self._client,
            topic=PIPELINE.source,
            partitions=self.partitions,
            pause_seconds=self._pause_seconds,
        )

    def _processor(self, actor: str) -> ProcessorSettings:
        return ProcessorSettings(
            actor=actor,
            journals=str(self.lives.folder),
            bootstrap=self.bootstrap,
            seed=self._rng.randrange(1 << 30),
            client=self._client,
            transactional_id=actor.rpartition(".")[0],  # of the role: a new life fences and aborts the one before
            source=PIPELINE.source,
            target=PIPELINE.target,
            group=PIPELINE.group,
            strategy=self._strategy,
        )

    def wait_for_progress(self, seconds: float = PROGRESS_SECONDS) -> None:
        """Return when committed records become visible: a fault while clients still connect tests little."""
        before = self.raw_reader.count
        self.lives.wait_until(lambda: self.raw_reader.count > before, "records are committed", seconds=seconds)
        assert not self.problems, self.problems

    def wait_until_aborted_are_read(self, reader: StockReader) -> None:
        """Return when that reader has come past records that were aborted: an abort alone may leave none in the log."""

        def are_read() -> bool:
            return any(
                record.fate is Fate.ABORTED and record.offset < reader.positions.get(partition, 0)
                for (_, partition), log in read_logs(client, [PIPELINE.target]).items()
                for record in log.records
            )

        with Client(self.bootstrap, security=self._security) as client:
            self.lives.wait_until(are_read, "aborted records are read")

    @property
    def problems(self) -> list[str]:
        return self.stock_reader.problems + self.raw_reader.problems

    def finish(self, seconds: float = PROGRESS_SECONDS) -> History:
        """Let every actor finish, and collect the history. The group has so long to process what is left."""
        for name in self.feeders:
            self.lives.stop(name)
        for name in self.processors:
            self.lives.resume(name)
        with Client(self.bootstrap, security=self._security) as client:
            where = range(self.partitions)
            ends = {number: client.offset_at(PIPELINE.source, number, LATEST) for number in where}
            self.lives.wait_until(
                lambda: _committed(client, where) == ends,
                "the group has processed everything",
                seconds=seconds,
            )
            for name in self.processors:
                self.lives.stop(name)
            self.lives.roles.clear()
            self.lives.wait_until(lambda: self._all_is_decided(client), "every transaction has ended")
            logs = read_logs(client, [PIPELINE.source, PIPELINE.target, OFFSETS_TOPIC])
        visible = sum(len(log.visible) for (topic, _), log in logs.items() if topic == PIPELINE.target)
        for reader in (self.stock_reader, self.raw_reader):
            self.lives.wait_until(lambda reader=reader: reader.count >= visible, "the readers have read everything")  # type: ignore[misc]
        assert not self.problems, self.problems
        return self._history(logs)

    def _all_is_decided(self, client: Client) -> bool:
        for number in range(self.partitions):
            found = client.fetch(PIPELINE.target, number, 0, max_wait_ms=0, isolation_level=READ_COMMITTED)
            if found.last_stable_offset != found.high_watermark:
                return False
        return True

    def _history(self, logs: Logs) -> History:
        history = History.of(read_journals(self.lives.folder), logs, PIPELINE)
        print(
            f"{sum(len(log.records) for log in logs.values())} records and "
            f"{sum(len(log.markers) for log in logs.values())} markers, {len(history.events)} events"
        )
        return history


def _committed(client: Client, partitions: Sequence[int]) -> dict[int, int]:
    """Where the group is; nothing while a transaction with offsets of it is open."""
    wanted = OffsetFetchRequestTopics(name=PIPELINE.source, partition_indexes=tuple(partitions))
    request = OffsetFetchRequest(
        groups=(OffsetFetchRequestGroup(group_id=PIPELINE.group, topics=(wanted,)),), require_stable=True
    )
    response = client.run(
        request_coordinator(
            client.core,
            CoordinatorKind.GROUP,
            PIPELINE.group,
            request,
            OffsetFetchResponse,
            FETCH_BY_NAME,
            code_of=lambda each: each.groups[0].error_code,
            resend=True,
        )
    )
    return {
        each.partition_index: each.committed_offset
        for topic in response.groups[0].topics
        for each in topic.partitions
        if each.error_code == 0
    }
