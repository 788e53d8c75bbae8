"""Pages of real topics: every position, both directions, gaps, transactions, limits."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from confluent_kafka import Producer

from kaspar.base.ids import TopicPartition
from kaspar.client.cluster import Client
from kaspar.console.messages.reading import scanning
from kaspar.console.messages.reading.batches import State, StoredRecord
from kaspar.console.messages.reading.fetching import fetch_round
from kaspar.console.messages.reading.positions import AtOffset, AtTime, Cursor, Direction, End, Position
from kaspar.console.messages.reading.scanning import Budget, Page, Query, Stopped, read_page
from kaspar.console.problems import NotThere
from kaspar.records.builder import build_batch
from kaspar.records.codec import Codec
from kaspar.records.record import Record
from tests.integration.console.messages.conftest import NewTopic
from tests.peers.observed import wait_until
from tests.peers.process import BrokerProcess

FORWARD, BACKWARD = Direction.FORWARD, Direction.BACKWARD
TIME_MS = 1_790_000_000_000

Matches = Callable[[StoredRecord], bool]


def page(
    client: Client,
    topic: str,
    position: Position,
    direction: Direction,
    *,
    limit: int = 10,
    matches: Matches | None = None,
    partitions: tuple[int, ...] = (),
    is_committed: bool = False,
    with_markers: bool = False,
) -> Page:
    query = Query(
        topic,
        position,
        direction,
        Budget(limit),
        partitions,
        is_committed=is_committed,
        with_markers=with_markers,
    )
    return read_page(client, query, matches)


def fill(client: Client, topic: str, partition: int, records: Sequence[Record], codec: Codec = Codec.NONE) -> None:
    client.produce(topic, partition, bytes(build_batch(records, codec=codec)))


def numbered(count: int, *, first: int = 0, every_ms: int = 1, size: int = 1) -> list[Record]:
    return [
        Record(TIME_MS + (first + n) * every_ms, b"k", b"%d" % (first + n) + b"." * (size - 1)) for n in range(count)
    ]


def numbers(records: Sequence[StoredRecord]) -> list[int]:
    return [int((each.record.value or b"").split(b".")[0]) for each in records]


@pytest.fixture(scope="module")
def three(client: Client, new_topic: NewTopic) -> str:
    """Numbers 0 to 299, one after the other in three partitions, in many small batches."""
    topic = new_topic(3)
    for first in range(0, 300, 30):
        for partition in range(3):
            records = [Record(TIME_MS + n, b"k", b"%d" % n) for n in range(first + partition, first + 30, 3)]
            fill(client, topic, partition, records, list(Codec)[first // 30 % len(Codec)])
    return topic


def test_newest_are_merged_by_time_newest_first(client: Client, three: str) -> None:
    found = page(client, three, End.NEWEST, BACKWARD)
    assert numbers(found.records) == list(range(299, 289, -1))
    assert found.stopped is Stopped.FULL


def test_oldest_are_merged_by_time(client: Client, three: str) -> None:
    found = page(client, three, End.OLDEST, FORWARD)
    assert numbers(found.records) == list(range(10))


@pytest.mark.parametrize("limit", [7, 100, 1000])
def test_pages_cover_everything_in_both_directions(client: Client, three: str, limit: int) -> None:
    forward: list[int] = []
    found = page(client, three, End.OLDEST, FORWARD, limit=limit)
    forward += numbers(found.records)
    while found.stopped is not Stopped.END:
        found = page(client, three, found.high, FORWARD, limit=limit)
        forward += numbers(found.records)
    assert forward == list(range(300))

    backward: list[int] = []
    position: Position = End.NEWEST
    while True:
        found = page(client, three, position, BACKWARD, limit=limit)
        backward += numbers(found.records)
        position = found.low
        if found.stopped is Stopped.END:
            break
    assert backward == list(range(299, -1, -1))


def test_turning_around_shows_the_same_page(client: Client, three: str) -> None:
    first = page(client, three, End.OLDEST, FORWARD)
    second = page(client, three, first.high, FORWARD)
    back = page(client, three, second.low, BACKWARD)
    assert numbers(back.records) == numbers(first.records)[::-1]
    again = page(client, three, back.high, FORWARD)
    assert numbers(again.records) == numbers(second.records)


def test_one_partition_at_an_offset(client: Client, three: str) -> None:
    found = page(client, three, AtOffset(50), FORWARD, partitions=(1,), limit=3)
    assert [(each.where.partition, each.offset) for each in found.records] == [(1, 50), (1, 51), (1, 52)]
    before = page(client, three, AtOffset(50), BACKWARD, partitions=(1,), limit=3)
    assert [each.offset for each in before.records] == [49, 48, 47]


def test_an_offset_beyond_the_end_is_the_end(client: Client, three: str) -> None:
    found = page(client, three, AtOffset(10**9), FORWARD)
    assert not found.records
    assert found.stopped is Stopped.END
    assert numbers(page(client, three, found.high, BACKWARD, limit=2).records) == [299, 298]


def test_at_a_time(client: Client, three: str) -> None:
    found = page(client, three, AtTime(TIME_MS + 150), FORWARD, limit=3)
    assert numbers(found.records) == [150, 151, 152]
    before = page(client, three, AtTime(TIME_MS + 150), BACKWARD, limit=3)
    assert numbers(before.records) == [149, 148, 147]
    assert not page(client, three, AtTime(TIME_MS + 10**6), FORWARD).records


@pytest.mark.parametrize("direction", [FORWARD, BACKWARD])
def test_filter_while_scanning(client: Client, three: str, direction: Direction) -> None:
    def is_hundred(record: StoredRecord) -> bool:
        return int(record.record.value or b"") % 100 == 0

    position = End.OLDEST if direction is FORWARD else End.NEWEST
    found = page(client, three, position, direction, matches=is_hundred)
    assert sorted(numbers(found.records)) == [0, 100, 200]
    assert found.stopped is Stopped.END
    assert found.scanned == 300


def test_budget_of_records_is_kept_and_the_page_continues(client: Client, three: str) -> None:
    query = Query(three, End.OLDEST, FORWARD, Budget(1000, scanned=120))
    first = read_page(client, query, lambda record: True)
    assert (first.stopped, first.scanned) == (Stopped.BUDGET, 120)
    rest = page(client, three, first.high, FORWARD, limit=1000)
    assert numbers(first.records) + numbers(rest.records) == list(range(300))


def test_budget_of_time_is_kept_and_every_page_gets_somewhere(client: Client, three: str) -> None:
    ticks = iter(range(10**9))
    query = Query(three, End.OLDEST, FORWARD, Budget(1000, seconds=0.5))
    found = read_page(client, query, lambda record: False, monotonic=lambda: float(next(ticks)))
    assert found.stopped is Stopped.BUDGET
    assert 0 < found.scanned < 300
    assert found.high != found.low


def test_budget_of_time_is_kept_by_a_filter_that_takes_long_for_a_record(client: Client, three: str) -> None:
    now = 0.0

    def matches(record: StoredRecord) -> bool:
        nonlocal now
        now += 0.4
        return False

    query = Query(three, End.OLDEST, FORWARD, Budget(1000, seconds=1.0))
    found = read_page(client, query, matches, monotonic=lambda: now)
    assert (found.stopped, found.scanned) == (Stopped.BUDGET, 3)


def test_what_a_slow_fetch_has_brought_is_used(client: Client, three: str, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0

    def slow_fetch(*arguments: Any) -> int:
        nonlocal now
        now += 5.0
        return fetch_round(*arguments)

    def matches(record: StoredRecord) -> bool:
        nonlocal now
        now += 0.001
        return False

    monkeypatch.setattr(scanning, "fetch_round", slow_fetch)
    query = Query(three, End.OLDEST, FORWARD, Budget(1000, seconds=1.0))
    assert read_page(client, query, matches, monotonic=lambda: now).scanned >= 50


def test_budget_of_bytes_is_kept(client: Client, new_topic: NewTopic) -> None:
    topic = new_topic(1)
    for first in range(6):
        fill(client, topic, 0, numbered(1, first=first, size=900_000))
    found = read_page(client, Query(topic, End.OLDEST, FORWARD, Budget(100, bytes=2_000_000)))
    assert found.stopped is Stopped.BUDGET
    assert 1 <= len(found.records) <= 3  # what was fetched counts, too
    few = read_page(client, Query(topic, End.OLDEST, FORWARD, Budget(100, found_bytes=2_000_000)))
    assert (few.stopped, numbers(few.records)) == (Stopped.FULL, [0, 1, 2])


def test_large_records_backward(client: Client, new_topic: NewTopic) -> None:
    topic = new_topic(2)
    for first in range(20):
        fill(client, topic, first % 2, numbered(1, first=first, size=1_000_000))
    found = page(client, topic, End.NEWEST, BACKWARD, limit=3)
    assert numbers(found.records) == [19, 18, 17]
    rest = page(client, topic, found.low, BACKWARD, limit=3)
    assert numbers(rest.records) == [16, 15, 14]


def test_paging_over_the_gaps_of_a_compacted_partition(client: Client, new_topic: NewTopic) -> None:
    settings = {"cleanup.policy": "compact", "internal.segment.bytes": "3000", "min.cleanable.dirty.ratio": "0"}
    topic = new_topic(1, settings)
    for first in range(0, 3000, 50):
        keys = [b"%d" % (n % 3) if n < 2990 else b"%d" % n for n in range(first, first + 50)]
        records = [Record(TIME_MS + first + n, key, b"%d" % (first + n)) for n, key in enumerate(keys)]
        fill(client, topic, 0, records)

    def everything(position: Position, direction: Direction) -> list[int]:
        found = page(client, topic, position, direction, limit=4)
        read = numbers(found.records)
        while found.stopped is not Stopped.END:
            position = found.high if direction is FORWARD else found.low
            found = page(client, topic, position, direction, limit=4)
            read += numbers(found.records)
        return read

    wait_until(lambda: len(everything(End.OLDEST, FORWARD)) < 200, "the partition is compacted")
    survivors = everything(End.OLDEST, FORWARD)
    assert survivors[-10:] == list(range(2990, 3000))
    assert everything(End.NEWEST, BACKWARD)[: len(survivors)] == survivors[::-1]


def test_empty_topic(client: Client, new_topic: NewTopic) -> None:
    topic = new_topic(2)
    for position, direction in ((End.OLDEST, FORWARD), (End.NEWEST, BACKWARD), (AtTime(5), FORWARD)):
        found = page(client, topic, position, direction)
        assert (list(found.records), found.stopped) == ([], Stopped.END)
        assert found.high == Cursor({0: 0, 1: 0})


def test_unknown_topic_and_partition_are_reported(client: Client, three: str) -> None:
    with pytest.raises(NotThere, match="no topic nowhere"):
        page(client, "nowhere", End.OLDEST, FORWARD)
    with pytest.raises(NotThere, match="no partition 9"):
        page(client, three, End.OLDEST, FORWARD, partitions=(9,))


@pytest.fixture(scope="module")
def transactional(messages_broker: BrokerProcess, new_topic: NewTopic) -> Iterator[str]:
    """c0 c1 [COMMIT] a0 a1 [ABORT] o0, the last of an open transaction."""
    topic = new_topic(1)

    def producer(name: str) -> Producer:
        made = Producer(
            {"bootstrap.servers": messages_broker.bootstrap, "transactional.id": f"{topic}-{name}", "log_level": 0}
        )
        made.init_transactions()
        made.begin_transaction()
        return made

    def send(made: Producer, *values: str) -> None:
        for value in values:
            made.produce(topic, value)
        made.flush()

    done = producer("done")
    send(done, "c0", "c1")
    done.commit_transaction()
    done.begin_transaction()
    send(done, "a0", "a1")
    done.abort_transaction()
    still = producer("open")
    send(still, "o0")
    yield topic
    still.abort_transaction()


@pytest.mark.parametrize("direction", [FORWARD, BACKWARD])
def test_transactions_are_shown_as_they_ended(client: Client, transactional: str, direction: Direction) -> None:
    position = End.OLDEST if direction is FORWARD else End.NEWEST

    def shown(**options: bool) -> list[tuple[str, State]]:
        records = page(client, transactional, position, direction, limit=100, **options).records  # type: ignore[arg-type]
        texts = [(each.note or (each.record.value or b"").decode(), each.state) for each in records]
        return texts if direction is FORWARD else texts[::-1]

    everything = [
        ("c0", State.COMMITTED),
        ("c1", State.COMMITTED),
        ("COMMIT", State.MARKER),
        ("a0", State.ABORTED),
        ("a1", State.ABORTED),
        ("ABORT", State.MARKER),
        ("o0", State.OPEN),
    ]
    assert shown(with_markers=True) == everything
    assert shown() == [each for each in everything if each[1] is not State.MARKER]
    assert shown(is_committed=True) == everything[:2]


def test_deleted_records_are_left_out(client: Client, messages_broker: BrokerProcess, new_topic: NewTopic) -> None:
    from confluent_kafka import TopicPartition as At
    from confluent_kafka.admin import AdminClient

    topic = new_topic(1)
    fill(client, topic, 0, numbered(10))
    fill(client, topic, 0, numbered(10, first=10))
    admin = AdminClient({"bootstrap.servers": messages_broker.bootstrap, "log_level": 0})
    for future in admin.delete_records([At(topic, 0, 13)]).values():
        future.result()
    assert numbers(page(client, topic, End.OLDEST, FORWARD).records) == list(range(13, 20))
    assert numbers(page(client, topic, Cursor({0: 2}), FORWARD, limit=2).records) == [13, 14]
    assert numbers(page(client, topic, End.NEWEST, BACKWARD, limit=100).records) == list(range(19, 12, -1))
    assert page(client, topic, End.OLDEST, FORWARD).bounds[0].log_start == 13


def test_reading_ends_before_the_given_cursor(client: Client, three: str) -> None:
    query = Query(three, End.OLDEST, FORWARD, Budget(1000), until=Cursor({0: 5, 1: 5, 2: 5}))
    found = read_page(client, query)
    assert numbers(found.records) == list(range(15))
    assert found.stopped is Stopped.END
    assert found.records[0].where == TopicPartition(three, 0)
