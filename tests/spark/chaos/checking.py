"""The check: everything that went in has come out once, and nothing else has.

Values are compared as multisets, by records that readers apart from the data source were given.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from kaspar.client import Client
from kaspar.protocol.isolation_level import READ_COMMITTED
from tests.chaos.readers import committed_records
from tests.spark.topics import TIMEOUT_SECONDS, Topics, wait_until

Multiset = Counter[bytes]


def differences(went_in: Multiset, came_out: Multiset) -> list[str]:
    """Nothing if they are equal; otherwise a line for each value that is lost, doubled or foreign."""
    lines = []
    for value in sorted(went_in.keys() | came_out.keys()):
        wanted, found = went_in[value], came_out[value]
        if found < wanted:
            lines.append(f"{value!r} is lost: it went in {wanted} times and came out {found} times")
        elif wanted == 0:
            lines.append(f"{value!r} came out and never went in")
        elif found > wanted:
            lines.append(f"{value!r} is doubled: it went in {wanted} times and came out {found} times")
    return lines


def stock_reading(topics: Topics, names: Iterable[str]) -> Multiset:
    """What librdkafka reads of them, committed."""
    return Counter(value for name in names for value in topics.values(name) if value is not None)


def raw_reading(topics: Topics, names: Iterable[str]) -> Multiset:
    """What a reader of raw batches finds committed, by the broker's word on aborted transactions."""
    found: Multiset = Counter()
    with Client(topics.bootstrap, timeout_s=TIMEOUT_SECONDS) as client:
        for name in names:
            for partition in range(topics.partition_count(name)):
                position, stable = 0, 1
                while position < stable:
                    response = client.fetch(name, partition, position, max_wait_ms=50, isolation_level=READ_COMMITTED)
                    records, position = committed_records(response, position)
                    found.update(record.value for record in records if record.value is not None)
                    stable = response.last_stable_offset
    return found


def check(topics: Topics, source: str, targets: Sequence[str]) -> list[str]:
    """What two readers find wrong with what became of a topic. All transactions must have ended first."""
    wait_until(lambda: all_is_decided(topics, targets), "no transaction is left open")
    went_in = stock_reading(topics, [source])
    problems = [f"librdkafka: {line}" for line in differences(went_in, stock_reading(topics, targets))]
    problems += [f"raw reader: {line}" for line in differences(went_in, raw_reading(topics, targets))]
    return problems


def all_is_decided(topics: Topics, names: Iterable[str]) -> bool:
    """Nothing holds a reader of committed records back."""
    with Client(topics.bootstrap, timeout_s=TIMEOUT_SECONDS) as client:
        for name in names:
            for partition in range(topics.partition_count(name)):
                found = client.fetch(name, partition, 0, max_wait_ms=0, isolation_level=READ_COMMITTED)
                if found.last_stable_offset != found.high_watermark:
                    return False
    return True
