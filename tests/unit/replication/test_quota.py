"""Throttles of replication (KIP-73)."""

import pytest

from kaspar.replication.quota import ReplicationQuota, is_listed


def test_without_a_limit_nothing_is_too_much() -> None:
    quota = ReplicationQuota()
    quota.record(1 << 40, 0)
    assert not quota.is_exceeded(0)


def test_the_rate_is_that_of_the_last_windows() -> None:
    quota = ReplicationQuota()
    quota.limit_bytes_per_s = 100
    for second in range(5):
        quota.record(100, second * 1000)
        assert not quota.is_exceeded(second * 1000 + 1000), "not above the limit"
    quota.record(200, 5000)
    assert quota.is_exceeded(5000)
    assert not quota.is_exceeded(7000), "time passes"


def test_what_is_older_than_all_windows_is_forgotten() -> None:
    quota = ReplicationQuota()
    quota.limit_bytes_per_s = 1
    quota.record(1_000_000, 0)
    assert quota.is_exceeded(10_999)
    assert not quota.is_exceeded(11_000)


@pytest.mark.parametrize(
    ("listed", "expected"),
    [((), False), (("*",), True), (("none",), False), (("0:1", "3:2"), False), (("3:1",), True), (("1:3",), False)],
)
def test_which_replicas_are_throttled(listed: tuple[str, ...], expected: bool) -> None:
    assert is_listed(listed, partition=3, broker_id=1) == expected
