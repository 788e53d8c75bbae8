"""A partition whose log holds transactions of every kind, as a client sees it from outside."""

import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, IsolationLevel, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

TOPIC = "transactions"
TOPIC_CONFIG = {"segment.bytes": "1048576", "index.interval.bytes": "4096"}
ABORTED = 3
"""How many of its transactions `fill_with_transactions` aborts."""

_TIMEOUT_S = 60.0


class Seen(NamedTuple):
    """What a read_committed reader finds."""

    values: list[bytes]
    last_stable_offset: int


def fill_with_transactions(bootstrap: str) -> Producer:
    """Committed and aborted transactions, one over several segments, two that overlap, records beside them; and one
    that is left open, by the producer that is returned.
    """
    randomly = random.Random(2)
    first, second, third = (_producer(bootstrap, name) for name in ("first", "second", "third"))
    _transaction(first, [b"committed %d" % number for number in range(10)], commit=True)
    _transaction(first, [b"aborted %d" % number for number in range(10)], commit=False)
    _transaction(first, [randomly.randbytes(3000) for _ in range(500)], commit=False)
    _begin(second, [b"overlapping"])
    _transaction(first, [b"meanwhile"], commit=True)
    second.abort_transaction(_TIMEOUT_S)
    plain = Producer({"bootstrap.servers": bootstrap, "log_level": 2})
    _send(plain, [b"beside"])
    _transaction(second, [b"last"], commit=True)
    _begin(third, [b"never decided"])
    _send(plain, [b"behind it"])
    return third


def _producer(bootstrap: str, name: str) -> Producer:
    settings: dict[str, Any] = {"bootstrap.servers": bootstrap, "transactional.id": name, "log_level": 2}
    producer = Producer(settings)
    producer.init_transactions(_TIMEOUT_S)
    return producer


def _transaction(producer: Producer, values: Sequence[bytes], *, commit: bool) -> None:
    _begin(producer, values)
    if commit:
        producer.commit_transaction(_TIMEOUT_S)
    else:
        producer.abort_transaction(_TIMEOUT_S)


def _begin(producer: Producer, values: Sequence[bytes]) -> None:
    producer.begin_transaction()
    _send(producer, values)


def _send(producer: Producer, values: Sequence[bytes]) -> None:
    for value in values:
        producer.produce(TOPIC, value, partition=0)
    assert producer.flush(_TIMEOUT_S) == 0


def read_committed(bootstrap: str) -> Seen:
    stable = last_stable_offset(bootstrap)
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,  # how long a broker holds back the response that shows the end
            "isolation.level": "read_committed",
            "log_level": 2,
        }
    )
    values = []
    try:
        consumer.assign([TopicPartition(TOPIC, 0, OFFSET_BEGINNING)])
        while (message := consumer.poll(_TIMEOUT_S)) is not None:
            problem = message.error()
            if problem is not None:
                assert problem.code() == KafkaError._PARTITION_EOF
                break
            values.append(message.value() or b"")
        assert message is not None, "the end of the partition was never reported"
    finally:
        consumer.close()
    return Seen(values, stable)


def last_stable_offset(bootstrap: str) -> int:
    partition = TopicPartition(TOPIC, 0)
    client = AdminClient({"bootstrap.servers": bootstrap, "log_level": 2})  # it must outlive its question
    latest: Callable[[], OffsetSpec] = OffsetSpec.latest
    asked = client.list_offsets({partition: latest()}, isolation_level=IsolationLevel.READ_COMMITTED)
    found: int = asked[partition].result(_TIMEOUT_S).offset
    return found
