"""kafka-transactions: what it prints and does, beside Kafka's."""

import contextlib
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from tests.compat.commands.catalog import TRANSACTIONS
from tests.compat.commands.complaints import complaint, first_and_long
from tests.compat.commands.places import Place, Places, same_at_all
from tests.compat.tools.comparing import run_ours
from tests.peers.kafka_tools import KafkaTools
from tests.peers.observed import wait_until
from tests.peers.raw_client import RawClient

VARYING = ("ProducerId", "LastTimestamp", "CurrentTransactionStartTimeMs", "TransactionDurationMs")
SERVERS = ("--bootstrap-server", "127.0.0.1:1")


@contextlib.contextmanager
def _open_transaction(place: Place) -> Iterator[str]:
    """Of one record in `orders`; yields the transactional id."""
    topic, transactional_id = place.name_of("orders"), place.name_of("writer")
    with RawClient(place.broker.port) as client:
        assert client.create_topic(topic) == 0
    wait_until(lambda: place.broker.lead(topic, [0]), f"{topic} has a leader")
    producer = Producer({"bootstrap.servers": place.broker.bootstrap, "transactional.id": transactional_id})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"x", partition=0)
    producer.flush(30)
    yield transactional_id


def _run(place: Place, *arguments: str) -> list[list[str]]:
    """Compared without what differs from run to run. Returns the cells of the table."""
    done = place.run_unseen(TRANSACTIONS, *place.servers, *arguments)
    rows = [[cell.strip() for cell in line.split("\t")] for line in done.output.splitlines()]
    shown = [
        ["N" if name in VARYING and cell.isdecimal() else cell for name, cell in zip(rows[0], row, strict=True)]
        for row in rows
    ]
    place.see([done.code, done.errors, shown])
    return rows


def test_open_transaction_is_shown_and_aborted(places: Places) -> None:
    def scenario(place: Place) -> None:
        with _open_transaction(place) as transactional_id:
            place.mask(r"producerId=\d+", "producerId=N")
            topic = place.name_of("orders")
            _run(place, "describe", "--transactional-id", transactional_id)
            on_partition = ("--topic", topic, "--partition", "0")
            _, (producer_id, epoch, *_) = _run(place, "describe-producers", *on_partition)
            _run(place, "describe-producers", *on_partition, "--broker-id", "1")
            pattern = f"{transactional_id[:3]}.*{transactional_id[-4:]}"
            _run(place, "list", "--transactional-id-pattern", pattern)
            _run(place, "list", "--transactional-id-pattern", pattern, "--duration-filter", "3600000")
            _run(place, "find-hanging", *on_partition)
            _run(place, "find-hanging", *on_partition, "--max-transaction-timeout", "-1")
            _run(place, "abort", *on_partition, "--start-offset", "5")
            stale = ("--producer-id", producer_id, "--producer-epoch", epoch, "--coordinator-epoch", "-1")
            _run(place, "abort", *on_partition, *stale)
            _run(place, "find-hanging", "--topic", topic, "--max-transaction-timeout", "-1")
            _run(place, "describe-producers", *on_partition)
            _run(place, "forceTerminateTransaction", "--transactionalId", transactional_id)
            _run(place, "describe", "--transactional-id", transactional_id)

    same_at_all(places, scenario)


def test_transaction_is_aborted_by_its_start(places: Places) -> None:
    def scenario(place: Place) -> None:
        with _open_transaction(place):
            on_partition = ("--topic", place.name_of("orders"), "--partition", "0")
            _run(place, "abort", *on_partition, "--start-offset", "0")
            _run(place, "describe-producers", *on_partition)

    same_at_all(places, scenario)


def test_what_does_not_exist(places: Places) -> None:
    def scenario(place: Place) -> None:
        place.mask(r"^\[.*?\] ERROR .*\n?", "")
        _run(place, "describe", "--transactional-id", place.name_of("nobody"))
        _run(place, "list", "--transactional-id-pattern", place.name_of("nobody"))
        _run(place, "list", "--transactional-id-pattern", "[")
        _run(place, "find-hanging", "--topic", place.name_of("nowhere"))

    same_at_all(places, scenario)


WRONG = [
    (),
    ("odd",),
    ("list",),
    SERVERS,
    (*SERVERS, "list", "--odd"),
    (*SERVERS, "list", "more"),
    (*SERVERS, "list", "--duration-filter"),
    (*SERVERS, "list", "--duration-filter", "x"),
    (*SERVERS, "describe"),
    (*SERVERS, "describe-producers", "--topic", "x"),
    (*SERVERS, "describe-producers", "--topic", "x", "--partition", "y"),
    (*SERVERS, "abort", "--topic", "x", "--partition", "0"),
    (*SERVERS, "abort", "--topic", "x", "--partition", "0", "--producer-id", "1"),
    (*SERVERS, "abort", "--topic", "x", "--partition", "0", "--producer-id", "1", "--producer-epoch", "1"),
    (*SERVERS, "abort", "--topic", "x", "--partition", "0", "--producer-id", "1", "--producer-epoch", "99999"),
    (*SERVERS, "find-hanging"),
    (*SERVERS, "find-hanging", "--broker-id", "1", "--partition", "0"),
]


@pytest.mark.parametrize("arguments", WRONG, ids=" ".join)
def test_wrong_options(kafka_tools: KafkaTools, arguments: tuple[str, ...]) -> None:
    theirs, ours = kafka_tools.run(TRANSACTIONS.kafka_class, *arguments), run_ours(TRANSACTIONS, *arguments)
    assert complaint(ours) == complaint(theirs)


UNREACHABLE = [
    ("list",),
    ("describe", "--transactional-id", "x"),
    ("describe-producers", "--topic", "x", "--partition", "0"),
    ("abort", "--topic", "x", "--partition", "0", "--start-offset", "3"),
    ("find-hanging", "--broker-id", "1"),
    ("forceTerminateTransaction", "--transactionalId", "x"),
]


@pytest.mark.parametrize("arguments", first_and_long(UNREACHABLE))
def test_no_broker_reachable(places: Places, arguments: tuple[str, ...]) -> None:
    def scenario(place: Place) -> None:
        config = place.file("default.api.timeout.ms=300\nrequest.timeout.ms=200\n")
        place.run(TRANSACTIONS, *SERVERS, "--command-config", config, *arguments)

    kafka, ours, _ = places
    same_at_all((kafka, ours), scenario)
