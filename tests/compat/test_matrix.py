"""What one client writes, every other reads byte for byte: each codec, binary keys and values, nulls, headers."""

import random
import time
from collections.abc import Callable

import pytest

from tests.compat.drivers.api import EARLIEST, Ability, Driver, Record
from tests.compat.drivers.registry import able
from tests.compat.partition_folder import CODECS
from tests.compat.scenario import came, sent
from tests.peers.brokers import Brokers

PAIRS = [(writer, reader) for writer in able() for reader in able(Ability.CONSUME) if writer != reader]

Written = tuple[str, list[Record]]


@pytest.fixture(scope="module")
def written(drivers: Callable[[str], Driver]) -> Callable[[str], Written]:
    """The topic that a client has filled, and what it wrote there; filled once for all its readers."""
    filled: dict[str, Written] = {}

    def fill(writer: str) -> Written:
        if writer not in filled:
            driver = drivers(writer)
            topic = f"written-by-{writer}"
            drivers("confluent-kafka").create_topic(topic)
            records = _records(driver)
            for codec in CODECS:
                driver.produce(topic, records, codec=codec)
            filled[writer] = topic, records * len(CODECS)
        return filled[writer]

    return fill


def _records(driver: Driver) -> list[Record]:
    """Records with everything that this client can send."""
    randomly = random.Random(1)
    start = int(time.time() * 1000) - 3_600_000
    every_byte = bytes(range(256))
    records = [Record(every_byte, every_byte), Record(None, b"tombstone"), Record(b"", b"empty"), Record(b"no key")]
    records += [Record(randomly.randbytes(size), randomly.randbytes(8)) for size in (1, 100, 10_000, 200_000)]
    records += [Record(b"compressible " * 5000, b"k"), Record("größer".encode(), "schlüssel".encode())]
    records.append(Record(b"with headers", b"k", headers=(("a", b"1"), ("a", b"2"), ("leer", b""))))
    if Ability.NULL_HEADER not in driver.cannot:
        records.append(Record(b"null header", b"k", headers=(("none", None),)))
    if Ability.PRODUCE_TIMESTAMP not in driver.cannot:
        records += [Record(b"v", b"k", timestamp_ms=start + stamp) for stamp in (5000, 1000, 9000)]
    return records


@pytest.mark.parametrize(("writer", "reader"), PAIRS, ids=[f"{writer}-{reader}" for writer, reader in PAIRS])
def test_what_one_client_writes_another_reads(
    broker: Brokers,
    drivers: Callable[[str], Driver],
    written: Callable[[str], Written],
    writer: str,
    reader: str,
) -> None:
    topic, records = written(writer)
    received = drivers(reader).consume(topic, start=EARLIEST, count=len(records))
    assert [record.offset for record in received] == list(range(len(records)))
    assert came(received) == sent(records)
    chosen = [(index, record.timestamp_ms) for index, record in enumerate(records) if record.timestamp_ms is not None]
    assert [(index, received[index].timestamp_ms) for index, _ in chosen] == chosen
