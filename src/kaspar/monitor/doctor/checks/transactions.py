"""Transactions that block read_committed consumers."""

from collections.abc import Iterator
from typing import Final

from kaspar.base.sentences import counted, duration_text, some
from kaspar.monitor.doctor.check import check
from kaspar.monitor.doctor.finding import Fault, Severity
from kaspar.monitor.doctor.looks import Looks

LONG_MS: Final = 5 * 60_000
"""An open transaction is reported after this time: read_committed consumers see no later records of its partitions."""


@check(
    "hanging-transaction",
    Severity.PROBLEM,
    title="A transaction hangs",
    why="It is open on a partition, and no coordinator will ever end it (KIP-664). read_committed consumers and "
    "compaction are stuck behind it forever.",
    remedy="Abort it.",
)
def hanging_transaction(looks: Looks) -> Iterator[Fault]:
    by_topic: dict[str, list[str]] = {}
    for each in looks.last.hanging:
        silent = duration_text(max(0, looks.last.at_ms - each.last_timestamp) / 1000)
        by_topic.setdefault(each.partition.topic, []).append(
            f"producer {each.producer_id} on {each.partition}, silent for {silent}"
        )
    for topic, found in sorted(by_topic.items()):
        detail = f"{counted(len(found), 'transaction')}: {some(found)}."
        yield Fault(f"topic {topic}", detail, looks.access.kaspar("txn", "hanging", "--topic", topic, "--abort"))


@check(
    "long-transaction",
    Severity.WARNING,
    title="A transaction has been open for a long time",
    why="read_committed consumers see nothing that was written to its partitions after it began.",
    remedy="Wait for its producer, or abort the transaction, which fences the producer: it must be restarted.",
)
def long_transaction(looks: Looks) -> Iterator[Fault]:
    for each in looks.last.transactions:
        age_ms = looks.last.at_ms - each.start_time_ms
        if age_ms > LONG_MS:
            limit = (
                "and has no timeout" if each.timeout_ms <= 0 else f"of {duration_text(each.timeout_ms / 1000)} at most"
            )
            detail = (
                f"It is {each.state} for {duration_text(age_ms / 1000)}, {limit}, and holds back "
                f"{some(each.partitions) or 'no partition yet'}."
            )
            command = looks.access.kaspar("txn", "abort", each.transactional_id)
            yield Fault(f"transactional id {each.transactional_id}", detail, command)
