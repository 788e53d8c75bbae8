"""Re-partition topics lose what is processed, and nothing else."""

from collections.abc import Mapping

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import TopicPartition
from kaspar.streams.running.purging import INTERVAL_S, RepartitionPurge

OWN, OTHER = TopicPartition("app-words-repartition", 0), TopicPartition("lines", 0)


class Cluster:
    def __init__(self) -> None:
        self.now = 0.0
        self.committed = {OWN: 5, OTHER: 9}
        self.deleted: list[dict[TopicPartition, int]] = []
        self.problem: Refused | OSError | None = None
        self.purge = RepartitionPurge([OWN.topic], lambda: self.committed, self.delete, lambda: self.now)

    def delete(self, before: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | Refused]:
        if isinstance(self.problem, OSError):
            raise self.problem
        self.deleted.append(dict(before))
        return {where: self.problem or offset for where, offset in before.items()}

    def batch_at(self, now: float) -> None:
        self.now = now
        self.purge.after_batch()


def test_only_processed_records_of_own_topics_are_deleted_now_and_then() -> None:
    cluster = Cluster()
    cluster.batch_at(1)
    assert cluster.deleted == []
    cluster.batch_at(INTERVAL_S)
    cluster.committed[OWN] = 8
    cluster.batch_at(INTERVAL_S + 1)
    assert cluster.deleted == [{OWN: 5}]
    cluster.batch_at(2 * INTERVAL_S)
    assert cluster.deleted == [{OWN: 5}, {OWN: 8}]


def test_nothing_is_asked_for_if_nothing_was_processed() -> None:
    cluster = Cluster()
    cluster.batch_at(INTERVAL_S)
    cluster.batch_at(2 * INTERVAL_S)
    assert cluster.deleted == [{OWN: 5}]


def test_a_failure_is_tried_again_and_ends_nothing() -> None:
    cluster = Cluster()
    for number, problem in enumerate([OSError("gone"), Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER, "moved"), None], 1):
        cluster.problem = problem
        cluster.batch_at(number * INTERVAL_S)
    assert cluster.deleted == [{OWN: 5}, {OWN: 5}]
