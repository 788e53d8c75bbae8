"""Processed records of re-partition topics are deleted (kaspar.streams.running.purging)."""

import json
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import TopicPartition
from kaspar.streams.running.purging import Purger


class Records:
    """What was deleted. Stands for the brokers."""

    def __init__(self) -> None:
        self.deleted: list[dict[TopicPartition, int]] = []
        self.refused: dict[TopicPartition, Refused] = {}
        self.called = threading.Event()

    def delete(self, client: Any, before: dict[TopicPartition, int]) -> dict[TopicPartition, Refused]:
        self.deleted.append(before)
        self.called.set()
        return self.refused

    def __enter__(self) -> "Records":
        return self

    def __exit__(self, *exception: object) -> None: ...


@pytest.fixture
def records(monkeypatch: pytest.MonkeyPatch) -> Records:
    found = Records()
    monkeypatch.setattr("kaspar.client.admin.records.delete_records", found.delete)
    return found


def progress(**offsets: int) -> Any:
    """Of a query that has read so much of partition 0 of these topics, and ticks."""
    ends = json.dumps({topic: {"0": offset} for topic, offset in offsets.items()})
    return SimpleNamespace(sources=[SimpleNamespace(endOffset="17"), SimpleNamespace(endOffset=ends)])


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_internal_topics_are_purged_up_to_the_last_complete_batch(records: Records) -> None:
    clock = Clock()
    purger = Purger({"again"}, lambda: records, now=clock)  # type: ignore[arg-type, return-value]
    purger.completed(progress(again=5, others=9))
    assert not records.deleted, "the interval is not over"
    clock.now = 31
    purger.completed(progress(again=7, others=9))
    assert records.called.wait(5)
    assert records.deleted == [{TopicPartition("again", 0): 7}]


def test_nothing_is_purged_before_a_batch_is_complete(records: Records) -> None:
    clock = Clock()
    purger = Purger({"again"}, lambda: records, now=clock)  # type: ignore[arg-type, return-value]
    clock.now = 31
    purger.completed(None)
    purger.completed(progress(others=9))
    assert not records.called.wait(0.05)


def test_what_was_refused_is_tried_again(records: Records) -> None:
    clock = Clock()
    records.refused = {TopicPartition("again", 0): Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER, "moved")}
    purger = Purger({"again"}, lambda: records, now=clock)  # type: ignore[arg-type, return-value]
    for _ in range(2):
        clock.now += 31
        records.called.clear()
        purger.completed(progress(again=7))
        assert records.called.wait(5)
    assert len(records.deleted) == 2
