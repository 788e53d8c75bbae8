"""The state of a partition from real changelogs: empty, lagging, ahead, compacted, truncated, with aborted records."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode, KasparError
from kaspar.base.ids import TopicPartition
from kaspar.client import Client
from kaspar.client.cluster import LATEST_TIMESTAMP
from kaspar.client.fetching import EndOutOfReach
from kaspar.client.producing import RawProducer
from kaspar.client.transactions import Ending, end, init_producer_id, transaction_support
from kaspar.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kaspar.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from kaspar.records import Record, build_batch
from kaspar.streams import serdes
from kaspar.streams.stores import kinds
from kaspar.streams.stores.byte_store import OverlayStore
from kaspar.streams.stores.changelog import ChangelogReader, ChangelogTopics, ChangelogTruncated, meta_header
from kaspar.streams.stores.disk.deltas import delta_of, write_delta
from kaspar.streams.stores.disk.ensure import ensure
from kaspar.streams.stores.spec import StoreSpec
from kaspar.testing import Broker
from tests.integration.commands import run

SPEC = StoreSpec("counts", kinds.TIMESTAMPED_KEY_VALUE, serdes.text(), serdes.long())
TOPIC = SPEC.changelog_topic("app")
PARTITION = 1
WHERE = TopicPartition(TOPIC, PARTITION)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


class Changelog:
    """The changelog of one store on a broker, with a new topic for each test."""

    def __init__(self, client: Client, name: str, settings: dict[str, str]) -> None:
        self.client = client
        self.where = TopicPartition(name, PARTITION)
        self.reader: ChangelogReader = ChangelogTopics(client, {SPEC.name: name})
        self.read_from: list[int] = []
        configs = SPEC.changelog_config() | settings
        topic = CreatableTopic(
            name=name,
            num_partitions=2,
            replication_factor=1,
            assignments=(),
            configs=tuple(CreatableTopicConfig(name=name, value=value) for name, value in configs.items()),
        )
        created = client.request_controller(CreateTopicsRequest(topics=(topic,)), CreateTopicsResponse)
        assert created.topics[0].error_code == ErrorCode.NONE

    def records(self, counts: dict[str, int | None]) -> memoryview:
        records = [
            Record(1000 + number, key.encode(), None if count is None else count.to_bytes(8))
            for number, (key, count) in enumerate(counts.items())
        ]
        records[-1] = records[-1]._replace(headers=(meta_header({"task": 1000 + len(records)}),))
        return memoryview(build_batch(records))

    def write(self, **counts: int | None) -> None:
        with RawProducer(self.client, producer=init_producer_id(self.client, None).producer) as producer:
            producer.partitions_of(self.where.topic)
            producer.send([(self.where, self.records(counts))])
            producer.flush()

    def write_in_transaction(self, *, committed: bool | None, **counts: int | None) -> None:
        """None leaves the transaction open."""
        transactional_id = f"{self.where.topic}-{committed}"
        pair = init_producer_id(self.client, transactional_id, timeout_ms=60_000).producer
        with RawProducer(self.client, producer=pair, transactional_id=transactional_id) as producer:
            producer.partitions_of(self.where.topic)
            producer.send([(self.where, self.records(counts))])
            producer.flush()
        if committed is not None:
            version, _ = transaction_support(self.client)
            end(self.client, Ending(transactional_id, pair, committed), version=version)

    def end(self) -> dict[str, int]:
        return {SPEC.name: self.client.offset_at(*self.where, LATEST_TIMESTAMP)}

    def truncate(self, offset: int) -> None:
        partition = DeleteRecordsPartition(partition_index=PARTITION, offset=offset)
        topic = DeleteRecordsTopic(name=self.where.topic, partitions=(partition,))
        response = self.client.request_leader(
            self.where,
            DeleteRecordsRequest(topics=(topic,), timeout_ms=10_000),
            DeleteRecordsResponse,
            code_of=lambda response: response.topics[0].partitions[0].error_code,
        )
        assert response.topics[0].partitions[0].error_code == ErrorCode.NONE

    def read(self, store: str, partition: int, from_offset: int, to_offset: int) -> Iterator[Sequence[Record]]:
        self.read_from.append(from_offset)
        return self.reader.read(store, partition, from_offset, to_offset)

    def contents(self, directory: Path, wanted: dict[str, int] | None = None) -> dict[str, tuple[int, int]]:
        wanted = self.end() if wanted is None else wanted
        with ensure(directory, PARTITION, [SPEC], wanted, self) as state:
            rows = list(state.snapshot(SPEC.name).range(None, None))
        return {key.decode(): (int.from_bytes(data[8:]), int.from_bytes(data[:8])) for key, data in rows}


@pytest.fixture
def changelog(broker: Broker, request: pytest.FixtureRequest) -> Iterator[Changelog]:
    with Client(broker.bootstrap_servers, timeout_s=10) as client:
        name = request.node.name.partition("[")[0]
        yield Changelog(client, f"{name}-changelog", getattr(request, "param", {}))


def test_an_empty_state_is_built_from_the_beginning(changelog: Changelog, tmp_path: Path) -> None:
    assert changelog.contents(tmp_path) == {}
    assert changelog.read_from == []
    changelog.write(a=1, b=2)
    changelog.write(a=None, c=3)
    assert changelog.contents(tmp_path) == {"b": (2, 1001), "c": (3, 1001)}
    assert changelog.read_from == [0]


def test_a_state_that_lags_is_caught_up(changelog: Changelog, tmp_path: Path) -> None:
    changelog.write(a=1, b=2)
    changelog.contents(tmp_path)
    changelog.write(b=3, c=4, d=5)
    with ensure(tmp_path, PARTITION, [SPEC], changelog.end(), changelog) as state:
        assert state.meta == {"task": 1003}
    assert changelog.contents(tmp_path) == {"a": (1, 1000), "b": (3, 1000), "c": (4, 1001), "d": (5, 1002)}
    assert changelog.read_from == [0, 2]


def test_a_state_that_is_ahead_is_rebuilt(changelog: Changelog, tmp_path: Path) -> None:
    changelog.write(a=1)
    earlier = changelog.end()
    changelog.write(a=2, b=3)
    changelog.contents(tmp_path)
    assert changelog.contents(tmp_path, earlier) == {"a": (1, 1000)}
    assert changelog.read_from == [0, 0]


def test_a_delta_saves_reading(changelog: Changelog, tmp_path: Path) -> None:
    changelog.write(a=1)
    with ensure(tmp_path, PARTITION, [SPEC], changelog.end(), changelog) as state:
        store = OverlayStore(state.snapshot(SPEC.name))
        before = dict(state.ends)
    store.put(b"a", (1000).to_bytes(8) + (9).to_bytes(8))
    changelog.write(a=9)
    write_delta(tmp_path, delta_of(before, changelog.end(), {}, {SPEC.name: store}))
    assert changelog.contents(tmp_path) == {"a": (9, 1000)}
    assert changelog.read_from == [0]


def test_aborted_records_are_not_applied(changelog: Changelog, tmp_path: Path) -> None:
    changelog.write_in_transaction(committed=True, a=1, b=2)
    changelog.write_in_transaction(committed=False, a=100, lost=100)
    changelog.write_in_transaction(committed=True, b=3)
    assert changelog.contents(tmp_path) == {"a": (1, 1000), "b": (3, 1000)}
    changelog.write_in_transaction(committed=False, a=100)
    assert changelog.contents(tmp_path) == {"a": (1, 1000), "b": (3, 1000)}


def test_a_catch_up_may_start_within_an_aborted_transaction(changelog: Changelog, tmp_path: Path) -> None:
    changelog.write(a=1)
    within = {SPEC.name: changelog.end()[SPEC.name] + 1}
    changelog.write_in_transaction(committed=False, a=100, b=100, c=100)
    changelog.write(d=4)
    assert changelog.contents(tmp_path, within) == {"a": (1, 1000)}
    assert changelog.contents(tmp_path) == {"a": (1, 1000), "d": (4, 1000)}
    assert changelog.read_from == [0, 2]


def test_an_open_transaction_is_waited_for_within_the_timeout(
    broker: Broker, changelog: Changelog, tmp_path: Path
) -> None:
    changelog.write_in_transaction(committed=None, a=1)
    with Client(broker.bootstrap_servers, timeout_s=2) as hasty:
        reader = ChangelogTopics(hasty, {SPEC.name: changelog.where.topic})
        with pytest.raises(EndOutOfReach):
            ensure(tmp_path, PARTITION, [SPEC], changelog.end(), reader)


@pytest.mark.parametrize("changelog", [{"internal.segment.bytes": "4096"}], indirect=True)
def test_a_compacted_changelog_gives_the_same_state(broker: Broker, changelog: Changelog, tmp_path: Path) -> None:
    for number in range(200):
        changelog.write(**{f"k{number % 7}": number, "gone": None if number > 100 else 1})
    changelog.write(last=1)
    expected = changelog.contents(tmp_path / "before")
    assert len(expected) == 8
    done = run("kaspar", "compact", changelog.where.topic, "--bootstrap-server", broker.bootstrap_servers)
    assert done.returncode == 0, done.stderr
    records = [
        record
        for chunk in changelog.reader.read(SPEC.name, PARTITION, 0, changelog.end()[SPEC.name])
        for record in chunk
    ]
    assert len(records) < 100
    assert changelog.contents(tmp_path / "after") == expected


@pytest.mark.parametrize("changelog", [{"cleanup.policy": "compact,delete"}], indirect=True)
def test_a_changelog_that_no_longer_begins_at_0_is_read(changelog: Changelog, tmp_path: Path) -> None:
    changelog.write(a=1, b=2)
    changelog.write(c=3)
    changelog.truncate(2)
    assert changelog.contents(tmp_path) == {"c": (3, 1000)}
    changelog.truncate(3)
    assert changelog.contents(tmp_path / "another") == {}


@pytest.mark.parametrize("changelog", [{"cleanup.policy": "compact,delete"}], indirect=True)
def test_a_state_before_the_beginning_of_its_changelog_is_rebuilt(changelog: Changelog, tmp_path: Path) -> None:
    changelog.write(a=1)
    changelog.contents(tmp_path)
    changelog.write(a=2)
    changelog.write(b=3)
    changelog.truncate(2)
    with pytest.raises(ChangelogTruncated):
        list(changelog.reader.read(SPEC.name, PARTITION, 1, 3))
    assert changelog.contents(tmp_path) == {"b": (3, 1000)}


def test_an_end_that_the_changelog_does_not_have_is_an_error(changelog: Changelog, tmp_path: Path) -> None:
    changelog.write(a=1)
    changelog.client.timeout_s = 2
    with pytest.raises(KasparError, match=changelog.where.topic):
        changelog.contents(tmp_path, {SPEC.name: 5})


def test_large_changelogs_are_read_in_chunks(changelog: Changelog, tmp_path: Path) -> None:
    for start in range(0, 20_000, 5000):
        changelog.write(**{f"key-{number:0100}": number for number in range(start, start + 5000)})
    chunks = list(changelog.reader.read(SPEC.name, PARTITION, 10, 19_990))
    assert len(chunks) > 1
    assert [record.offset for chunk in chunks for record in chunk] == list(range(10, 19_990))
    assert len(changelog.contents(tmp_path)) == 20_000
