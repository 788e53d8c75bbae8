"""Topics with everything in them that a reader can meet: filled once on each broker, and only read by the tests."""

from dataclasses import dataclass

from tests.spark.topics import Message, Topics, wait_until

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
BEGAN_MS = 1_700_000_000_000  # of the first record of `mixed`; one follows each second
MIXED_PARTITIONS = 3
MIXED_RECORDS = 90  # in each partition
FEW = 4  # records in each transaction


@dataclass(frozen=True, slots=True)
class Menagerie:
    mixed: str  # null keys, null values, empty ones, headers of all kinds, timestamps one second apart
    empty: str
    codecs: str  # a batch of each codec in one partition
    transactions: str  # committed and aborted ones in turn, over two partitions, and plain records between them
    undecided: str  # a transaction that never ends, behind a committed record
    compacted: str  # with holes where older values of keys were
    appended: str  # LogAppendTime
    cut: str  # its first records were deleted

    @classmethod
    def on(cls, topics: Topics) -> "Menagerie":
        return cls(
            mixed=_mixed(topics),
            empty=topics.create(name="animals-empty", partitions=2),
            codecs=_codecs(topics),
            transactions=_transactions(topics),
            undecided=_undecided(topics),
            compacted=_compacted(topics),
            appended=_appended(topics),
            cut=_cut(topics),
        )


def _mixed(topics: Topics) -> str:
    name = topics.create(name="animals-mixed", partitions=MIXED_PARTITIONS, config={"retention.ms": "-1"})
    topics.produce(
        name,
        (
            Message(
                value=None
                if number % 7 == 0
                else b""
                if number % 7 == 1
                else f"value {number}".encode() * (number % 5),
                key=None if number % 3 == 0 else b"" if number % 11 == 0 else f"key {number % 10}".encode(),
                headers=_headers(number),
                partition=partition,
                timestamp_ms=BEGAN_MS + 1000 * number,
            )
            for number in range(MIXED_RECORDS)
            for partition in range(MIXED_PARTITIONS)
        ),
    )
    return name


def _headers(number: int) -> tuple[tuple[str, bytes | None], ...]:
    match number % 4:
        case 0:
            return ()
        case 1:
            return (("one", b"1"),)
        case 2:
            return (("twice", b"a"), ("twice", b"b"), ("", b""))
        case _:
            return (("nothing", None), ("ümlaut", "ö".encode()))


def _codecs(topics: Topics) -> str:
    name = topics.create(name="animals-codecs", config={"compression.type": "producer"})
    for codec in CODECS:
        topics.produce(name, (f"{codec} {number} ".encode() * 20 for number in range(50)), codec=codec)
    return name


def _transactions(topics: Topics) -> str:
    name = topics.create(name="animals-transactions", partitions=2)
    for number in range(6):
        records = [Message(f"{number}.{each}".encode(), partition=each % 2) for each in range(FEW)]
        topics.transact(name, records, commit=number % 2 == 0)
        topics.produce(name, [Message(f"plain {number}".encode(), partition=number % 2)])
    return name


def _undecided(topics: Topics) -> str:
    name = topics.create(name="animals-undecided")
    topics.transact(name, [b"decided"], commit=True)
    topics.open_transaction(name, [b"open"])
    topics.produce(name, [b"behind it"])
    return name


def _compacted(topics: Topics) -> str:
    settings = {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0.01",
        "segment.ms": "100",
        "min.compaction.lag.ms": "0",
        "delete.retention.ms": "0",
    }
    name = topics.create(name="animals-compacted", config=settings)

    def cleaned() -> bool:
        """A record more, so that the last segment is rolled; then the cleaner comes some time."""
        topics.produce(name, [Message(b"last", key=b"last")])
        return len(topics.read(name)) < 60

    topics.produce(name, [Message(f"{number}".encode(), key=f"{number % 5}".encode()) for number in range(100)])
    wait_until(cleaned, "the cleaner has been there")
    return name


def _appended(topics: Topics) -> str:
    name = topics.create(name="animals-appended", config={"message.timestamp.type": "LogAppendTime"})
    topics.produce(name, [Message(b"stamped by the broker", timestamp_ms=BEGAN_MS), b"too"])
    return name


def _cut(topics: Topics) -> str:
    name = topics.create(name="animals-cut")
    topics.produce(name, (f"{number}".encode() for number in range(20)))
    topics.delete_records(name, 7)
    return name
