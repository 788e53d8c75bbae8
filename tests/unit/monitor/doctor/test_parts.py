"""A part of a look that fails is named, and a broker that is silent is asked once."""

import pytest

from kaspar.base.errors import ErrorCode, KasparError, Refused
from kaspar.client.core import UnsupportedByPeer
from kaspar.monitor.doctor.observation import Missing
from kaspar.monitor.doctor.observing.parts import Parts

TIMED_OUT = Refused(ErrorCode.REQUEST_TIMED_OUT, "Timed out waiting for a node assignment. Call: x")


class Brokers:
    """Broker 2 fails."""

    def __init__(self, problem: Exception) -> None:
        self.problem = problem
        self.asked: list[int] = []

    def __call__(self, broker_id: int) -> str:
        self.asked.append(broker_id)
        if broker_id == 2:
            raise self.problem
        return f"of {broker_id}"


@pytest.mark.parametrize("problem", [TIMED_OUT, ConnectionRefusedError(111, "Connection refused"), TimeoutError()])
def test_a_silent_broker_is_asked_once(problem: Exception) -> None:
    parts, brokers = Parts(), Brokers(problem)
    assert parts.read_each("settings", [1, 2, 3], brokers) == {1: "of 1", 3: "of 3"}
    assert parts.read_each("log directories", [1, 2, 3], brokers) == {1: "of 1", 3: "of 3"}
    assert (brokers.asked, parts.silent) == ([1, 2, 3, 1, 3], {2})
    assert [each.what for each in parts.missing] == ["settings of broker 2"]


@pytest.mark.parametrize(
    ("problem", "why"),
    [
        (
            Refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed."),
            "not permitted: an ACL for the cluster is missing",
        ),
        (
            Refused(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, ""),
            "not permitted: an ACL for the transactional id is missing",
        ),
        (Refused(ErrorCode.INVALID_REQUEST, "It is wrong."), "It is wrong"),
        (UnsupportedByPeer("the broker does not know it"), "the broker does not know it"),
    ],
)
def test_a_broker_that_refuses_is_not_silent(problem: KasparError, why: str) -> None:
    parts, brokers = Parts(), Brokers(problem)
    parts.read_each("settings", [1, 2], brokers)
    assert (parts.silent, parts.missing) == (set(), [Missing("settings of broker 2", why)])


def test_a_part_that_fails_is_none() -> None:
    parts = Parts()

    def fail() -> int:
        raise ConnectionResetError(104, "Connection reset by peer")

    assert parts.read("topics", fail) is None
    assert parts.read("groups", lambda: 3) == 3
    assert parts.missing == [Missing("topics", "Connection reset by peer")]
