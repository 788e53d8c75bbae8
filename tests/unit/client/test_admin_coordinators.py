"""Calls about many groups: one request for each coordinator, and another attempt for those that move."""

from collections.abc import Sequence
from typing import Any, cast

from kaspar.base.errors import ErrorCode, Refused
from kaspar.client.admin.coordinators import CoordinatorNode, ask_coordinators
from kaspar.client.admin.session import Admin
from kaspar.client.coordinators import CoordinatorKind
from kaspar.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse


class Cluster:
    """Stands for Admin. Broker 2 coordinates groups that begin with `b`, broker 1 the others; `secret` has none."""

    api_timeout_s = 5.0

    def __init__(self) -> None:
        self.lookups: list[Sequence[str]] = []
        self.asked: list[tuple[int, Sequence[str]]] = []
        self.unreachable: list[OSError] = []

    def ask_any(self, call: str, request: FindCoordinatorRequest, response_class: Any) -> FindCoordinatorResponse:
        self.lookups.append(request.coordinator_keys)
        return FindCoordinatorResponse(coordinators=tuple(map(self._coordinator, request.coordinator_keys)))

    def _coordinator(self, key: str) -> Coordinator:
        refused = ErrorCode.GROUP_AUTHORIZATION_FAILED if key == "secret" else ErrorCode.NONE
        return Coordinator(
            key=key, node_id=2 if key.startswith("b") else 1, host="h", port=1, error_code=refused, error_message=None
        )

    def report_unreachable(self, error: OSError) -> None:
        self.unreachable.append(error)

    def ask(self, node: CoordinatorNode, keys: Sequence[str]) -> dict[str, str | Refused]:
        """The coordinator on broker 2 is loading at first; that on broker 1 cannot be reached at first."""
        first = all(number != node.broker_id for number, _ in self.asked)
        self.asked.append((node.broker_id, keys))
        if first and node.broker_id == 1:
            raise ConnectionResetError("gone")
        if first:
            return dict.fromkeys(keys, Refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "loading"))
        return {key: key.upper() for key in keys}


def test_each_coordinator_gets_one_request() -> None:
    cluster = Cluster()
    results = ask_coordinators(
        cast(Admin, cluster), "call", CoordinatorKind.GROUP, ["a1", "b1", "secret", "a2", "b2", "a1"], cluster.ask
    )
    assert list(results) == ["a1", "b1", "secret", "a2", "b2"]
    refused = results.pop("secret")
    assert isinstance(refused, Refused)
    assert refused.code is ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert results == {"a1": "A1", "b1": "B1", "a2": "A2", "b2": "B2"}
    assert cluster.asked == [(1, ["a1", "a2"]), (2, ["b1", "b2"])] * 2
    assert cluster.lookups == [("a1", "b1", "secret", "a2", "b2"), ("a1", "b1", "a2", "b2")]
    assert len(cluster.unreachable) == 1


def test_nothing_is_asked_about_no_groups() -> None:
    cluster = Cluster()
    assert ask_coordinators(cast(Admin, cluster), "call", CoordinatorKind.GROUP, [], cluster.ask) == {}
    assert cluster.lookups == []
