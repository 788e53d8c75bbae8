"""Finding a coordinator, and retrying while it moves, against a scripted broker."""

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.client import Client, cluster_core
from kaspar.client.coordinators import MOVING, CoordinatorKind, find_coordinators, request_coordinator
from kaspar.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from tests.unit.client.clusters import OneCoordinator
from tests.unit.client.scripted import ScriptedBroker

QUESTION = EndTxnRequest(transactional_id="mine", producer_id=1, producer_epoch=0, committed=True)


def ask(script: OneCoordinator, *, timeout_s: float = 5.0, times: int = 1, resend: bool = False) -> EndTxnResponse:
    with ScriptedBroker(script) as broker:
        script.port = broker.port
        with Client(f"127.0.0.1:{broker.port}", timeout_s=timeout_s) as client:
            for _ in range(times):
                response = client.run(
                    request_coordinator(
                        client.core, CoordinatorKind.TRANSACTION, "mine", QUESTION, EndTxnResponse, resend=resend
                    )
                )
    return response


def test_coordinator_is_looked_up_once() -> None:
    script = OneCoordinator()
    assert ask(script, times=2).error_code == ErrorCode.NONE
    assert script.looked_for == [(CoordinatorKind.TRANSACTION, "mine")]
    assert script.asked == 2


@pytest.mark.parametrize("code", sorted(MOVING))
def test_request_is_sent_again_to_a_coordinator_that_moves(code: ErrorCode) -> None:
    script = OneCoordinator()
    script.responses = [code, code]
    assert ask(script).error_code == ErrorCode.NONE
    assert len(script.looked_for) == script.asked == 3


def test_coordinator_that_is_not_available_yet_is_looked_up_again() -> None:
    script = OneCoordinator()
    script.found = [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert ask(script).error_code == ErrorCode.NONE
    assert len(script.looked_for) == 2


def test_looking_up_a_coordinator_ends_when_the_time_is_up() -> None:
    script = OneCoordinator()
    script.found = [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 100
    with pytest.raises(Refused) as refused:
        ask(script, timeout_s=0.2)
    assert refused.value.code == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_authorization_failure_is_final() -> None:
    script = OneCoordinator()
    script.found = [ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED]
    with pytest.raises(Refused):
        ask(script)
    assert len(script.looked_for) == 1


def test_other_error_codes_are_returned_to_the_caller() -> None:
    script = OneCoordinator()
    script.responses = [ErrorCode.INVALID_TXN_STATE]
    assert ask(script).error_code == ErrorCode.INVALID_TXN_STATE
    assert script.asked == 1


def test_request_whose_response_was_lost_is_resent_only_if_allowed() -> None:
    script = OneCoordinator()
    script.responses = [None]
    with pytest.raises(ConnectionError):
        ask(script)
    script.responses = [None]
    assert ask(script, resend=True).error_code == ErrorCode.NONE
    assert script.asked == 3


def test_known_coordinators_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_core, "_MAX_COORDINATORS", 3)
    script = OneCoordinator()
    with ScriptedBroker(script) as broker, Client(f"127.0.0.1:{broker.port}", timeout_s=5.0) as client:
        script.port = broker.port
        for number in range(10):
            client.run(find_coordinators(client.core, CoordinatorKind.TRANSACTION, [f"id{number}"]))
            known = [client.core.coordinator_of(CoordinatorKind.TRANSACTION, f"id{each}") for each in range(10)]
            assert known[number] == ("127.0.0.1", script.port)
            assert 10 - known.count(None) <= 3
