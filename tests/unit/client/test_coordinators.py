"""Finding a coordinator and asking it again while it moves, against a scripted broker."""

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.client import Client, coordinators
from kaspar.client.coordinators import MOVING, CoordinatorKind, at_coordinator, find_coordinators
from kaspar.protocol.headers import RequestHeader
from kaspar.protocol.messages.api_versions import ApiVersionsRequest
from kaspar.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from kaspar.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from kaspar.protocol.schema import Message
from tests.unit.client.scripted import HANG_UP, ScriptedBroker, api_versions

QUESTION = EndTxnRequest(transactional_id="mine", producer_id=1, producer_epoch=0, committed=True)


class OneCoordinator:
    """A broker that coordinates all. `answers` and `found` are the codes of the next answers; None: hang up."""

    def __init__(self) -> None:
        self.port = 0
        self.answers: list[ErrorCode | None] = []
        self.found: list[ErrorCode] = []
        self.looked_for: list[tuple[int, str]] = []
        self.asked = 0

    def __call__(self, header: RequestHeader, request: Message) -> Message | bytes | None:
        match request:
            case ApiVersionsRequest():
                return api_versions()
            case FindCoordinatorRequest():
                key = request.coordinator_keys[0]
                self.looked_for.append((request.key_type, key))
                code = self.found.pop(0) if self.found else ErrorCode.NONE
                there = Coordinator(key=key, node_id=1, host="127.0.0.1", port=self.port, error_code=code)
                return FindCoordinatorResponse(coordinators=(there,))
            case EndTxnRequest():
                self.asked += 1
                answer = self.answers.pop(0) if self.answers else ErrorCode.NONE
                return HANG_UP if answer is None else EndTxnResponse(error_code=answer)
        raise AssertionError(f"not scripted: {request}")


def ask(script: OneCoordinator, *, timeout_s: float = 5.0, times: int = 1, resend: bool = False) -> EndTxnResponse:
    with ScriptedBroker(script) as broker:
        script.port = broker.port
        with Client(f"127.0.0.1:{broker.port}", timeout_s=timeout_s) as client:
            for _ in range(times):
                answer = at_coordinator(
                    client, CoordinatorKind.TRANSACTION, "mine", QUESTION, EndTxnResponse, resend=resend
                )
    return answer


def test_a_coordinator_is_looked_for_once() -> None:
    script = OneCoordinator()
    assert ask(script, times=2).error_code == ErrorCode.NONE
    assert script.looked_for == [(CoordinatorKind.TRANSACTION, "mine")]
    assert script.asked == 2


@pytest.mark.parametrize("code", sorted(MOVING))
def test_a_coordinator_that_moves_is_looked_for_and_asked_again(code: ErrorCode) -> None:
    script = OneCoordinator()
    script.answers = [code, code]
    assert ask(script).error_code == ErrorCode.NONE
    assert len(script.looked_for) == script.asked == 3


def test_a_coordinator_that_is_not_there_yet_is_looked_for_again() -> None:
    script = OneCoordinator()
    script.found = [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert ask(script).error_code == ErrorCode.NONE
    assert len(script.looked_for) == 2


def test_the_looking_ends_when_the_time_is_up() -> None:
    script = OneCoordinator()
    script.found = [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 100
    with pytest.raises(Refused) as refused:
        ask(script, timeout_s=0.2)
    assert refused.value.code == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_who_may_not_ask_is_refused_at_once() -> None:
    script = OneCoordinator()
    script.found = [ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED]
    with pytest.raises(Refused):
        ask(script)
    assert len(script.looked_for) == 1


def test_other_answers_are_the_caller_s_to_judge() -> None:
    script = OneCoordinator()
    script.answers = [ErrorCode.INVALID_TXN_STATE]
    assert ask(script).error_code == ErrorCode.INVALID_TXN_STATE
    assert script.asked == 1


def test_a_question_whose_answer_was_lost_is_put_again_only_if_it_may_be() -> None:
    script = OneCoordinator()
    script.answers = [None]
    with pytest.raises(ConnectionError):
        ask(script)
    script.answers = [None]
    assert ask(script, resend=True).error_code == ErrorCode.NONE
    assert script.asked == 3


def test_a_client_that_lives_long_does_not_remember_the_places_of_all_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinators, "_MOST_KNOWN", 3)
    script = OneCoordinator()
    with ScriptedBroker(script) as broker, Client(f"127.0.0.1:{broker.port}", timeout_s=5.0) as client:
        for number in range(10):
            find_coordinators(client, CoordinatorKind.TRANSACTION, [f"id{number}"])
            assert len(client.coordinators) <= 3
