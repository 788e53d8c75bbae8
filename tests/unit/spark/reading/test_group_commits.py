"""A thread commits a query's progress to its group: always the newest, again after a failure, without blocking it."""

import threading
import uuid
from collections.abc import Mapping

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import TopicPartition
from kaspar.client import Client
from kaspar.spark.reading.group_commits import GroupCommits

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
IDS = {"t": uuid.UUID(int=7)}
SECONDS = 10.0


class Coordinator:
    """Takes commits in place of client/offsets.py. Each of `failures` is raised by one of them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("kaspar.client.offsets.commit_offsets", self.commit)
        self.commits: list[dict[TopicPartition, int]] = []
        self.failures: list[Exception] = []
        self.refused: dict[TopicPartition, ErrorCode] = {}
        self.may_respond = threading.Event()
        self.may_respond.set()
        self.asked = threading.Event()

    def commit(
        self,
        client: Client,
        group_id: str,
        offsets: Mapping[TopicPartition, int],
        *,
        topic_ids: Mapping[str, uuid.UUID],
        metadata: str,
    ) -> dict[TopicPartition, ErrorCode]:
        assert (group_id, topic_ids, metadata) == ("g", IDS, "run 7")
        self.asked.set()
        assert self.may_respond.wait(SECONDS)
        if self.failures:
            raise self.failures.pop(0)
        self.commits.append(dict(offsets))
        return self.refused


@pytest.fixture
def coordinator(monkeypatch: pytest.MonkeyPatch) -> Coordinator:
    return Coordinator(monkeypatch)


def group_commits() -> GroupCommits:
    return GroupCommits("g", lambda: Client("127.0.0.1:1"), metadata="run 7", retry_s=0.01)


def test_what_is_done_is_committed(coordinator: Coordinator) -> None:
    commits = group_commits()
    commits.processed({T0: 5, T1: 2}, IDS)
    assert commits.wait_until_committed(SECONDS)
    commits.processed({T0: 5, T1: 3}, IDS)
    assert commits.wait_until_committed(SECONDS)
    commits.close()
    assert coordinator.commits == [{T0: 5, T1: 2}, {T1: 3}], "and only what has changed"


def test_nobody_waits_for_a_coordinator_and_the_newest_is_what_counts(coordinator: Coordinator) -> None:
    coordinator.may_respond.clear()
    commits = group_commits()
    commits.processed({T0: 1}, IDS)
    assert coordinator.asked.wait(SECONDS)
    for offset in range(2, 100):
        commits.processed({T0: offset}, IDS)
    assert not commits.wait_until_committed(0.0)
    coordinator.may_respond.set()
    assert commits.wait_until_committed(SECONDS)
    commits.close()
    assert coordinator.commits == [{T0: 1}, {T0: 99}]


def test_a_failure_is_reported_once_and_retried(coordinator: Coordinator, caplog: pytest.LogCaptureFixture) -> None:
    coordinator.failures = [ConnectionRefusedError("nobody is there")] * 3
    commits = group_commits()
    commits.processed({T0: 5}, IDS)
    assert commits.wait_until_committed(SECONDS)
    commits.close()
    assert coordinator.commits == [{T0: 5}]
    assert [record.getMessage() for record in caplog.records] == [
        "The offsets of group 'g' could not be committed: nobody is there."
    ]


def test_a_refused_commit_is_reported_and_not_retried_for_ever(
    coordinator: Coordinator, caplog: pytest.LogCaptureFixture
) -> None:
    coordinator.refused = {T0: ErrorCode.UNKNOWN_MEMBER_ID}
    commits = group_commits()
    commits.processed({T0: 5}, IDS)
    assert commits.wait_until_committed(SECONDS)
    commits.close()
    assert len(coordinator.commits) == 1
    assert "t-0: UNKNOWN_MEMBER_ID" in caplog.text
