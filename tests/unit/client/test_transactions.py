"""Requests to transaction coordinators, retried until each has a final response, against a scripted broker."""

import socket
from contextlib import closing

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import ProducerIdAndEpoch
from kaspar.client import Client
from kaspar.client.transactions import Ending, end, end_all, init_producer_id, list_transactions
from kaspar.protocol.headers import RequestHeader
from kaspar.protocol.messages.api_versions import ApiVersionsRequest
from kaspar.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from kaspar.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from kaspar.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kaspar.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)
from kaspar.protocol.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseBroker
from kaspar.protocol.schema import Message
from tests.unit.client.scripted import HANG_UP, ScriptedBroker, api_versions

ENDINGS = [Ending(f"id{number}", ProducerIdAndEpoch(number, 3), True) for number in range(4)]


class Coordinators:
    """The coordinator of all ids. `responses` has the error codes before success, by id; None closes the connection."""

    def __init__(self, responses: dict[str, list[ErrorCode | None]]) -> None:
        self.port = 0
        self.responses = responses
        self.lookups: list[tuple[str, ...]] = []
        self.versions: set[int] = set()
        self.ends: list[str] = []

    def __call__(self, header: RequestHeader, request: Message) -> Message | bytes | None:
        match request:
            case ApiVersionsRequest():
                return api_versions()
            case FindCoordinatorRequest():
                self.lookups.append(request.coordinator_keys)
                found = (
                    Coordinator(key=key, node_id=1, host="127.0.0.1", port=self.port)
                    for key in request.coordinator_keys
                )
                return FindCoordinatorResponse(coordinators=tuple(found))
            case EndTxnRequest():
                self.versions.add(header.api_version)
                self.ends.append(request.transactional_id)
                response = self._next(request.transactional_id)
                return HANG_UP if response is None else EndTxnResponse(error_code=response)
            case InitProducerIdRequest():
                response = self._next(request.transactional_id or "")
                if response is None:
                    return HANG_UP
                return InitProducerIdResponse(error_code=response, producer_id=7, producer_epoch=1)
        raise AssertionError(f"not scripted: {request}")

    def _next(self, transactional_id: str) -> ErrorCode | None:
        left = self.responses.get(transactional_id)
        return left.pop(0) if left else ErrorCode.NONE


def run(responses: dict[str, list[ErrorCode | None]], *, version: int = 2) -> tuple[Coordinators, list[ErrorCode]]:
    script = Coordinators(responses)
    with ScriptedBroker(script) as broker, Client(f"127.0.0.1:{broker.port}", timeout_s=5.0) as client:
        script.port = broker.port
        return script, end_all(client, ENDINGS, version=version)


def test_all_coordinators_are_found_with_one_request_and_each_end_is_sent_once() -> None:
    script, codes = run({})
    assert codes == [ErrorCode.NONE] * 4
    assert script.lookups == [("id0", "id1", "id2", "id3")]
    assert script.ends == ["id0", "id1", "id2", "id3"]


@pytest.mark.parametrize(("version", "api_version"), [(2, 5), (1, 4)])
def test_the_version_of_transactions_chooses_that_of_the_request(version: int, api_version: int) -> None:
    assert run({}, version=version)[0].versions == {api_version}


def test_only_requests_without_a_final_response_are_resent() -> None:
    busy: list[ErrorCode | None] = [ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
    script, codes = run({"id2": busy})
    assert codes == [ErrorCode.NONE] * 4
    assert [script.ends.count(ending.transactional_id) for ending in ENDINGS] == [1, 1, 3, 1]


def test_a_lost_connection_is_followed_by_another() -> None:
    script, codes = run({"id1": [None]})
    assert codes == [ErrorCode.NONE] * 4
    assert script.ends.count("id3") >= 1


@pytest.mark.parametrize("response", [ErrorCode.COORDINATOR_NOT_AVAILABLE, None], ids=["moves", "hangs up"])
def test_timeout_of_zero_means_one_attempt(response: ErrorCode | None) -> None:
    script = Coordinators({"id0": [response] * 1000})
    with ScriptedBroker(script) as broker, Client(f"127.0.0.1:{broker.port}", timeout_s=60.0) as client:
        script.port = broker.port
        with pytest.raises((Refused, OSError)):
            end_all(client, ENDINGS[:1], version=2, timeout_s=0.0)
    assert script.ends == ["id0"]


def test_refusal_is_returned_for_its_transaction_only() -> None:
    _, codes = run({"id1": [ErrorCode.PRODUCER_FENCED]})
    assert codes == [ErrorCode.NONE, ErrorCode.PRODUCER_FENCED, ErrorCode.NONE, ErrorCode.NONE]


def test_refused_end_names_its_transaction() -> None:
    script = Coordinators({"id0": [ErrorCode.INVALID_TXN_STATE]})
    with ScriptedBroker(script) as broker, Client(f"127.0.0.1:{broker.port}", timeout_s=5.0) as client:
        script.port = broker.port
        with pytest.raises(Refused, match="id0: INVALID_TXN_STATE"):
            end(client, ENDINGS[0], version=2)


@pytest.mark.parametrize("transactional_id", [None, "mine"])
def test_init_producer_id_is_retried_until_it_succeeds(transactional_id: str | None) -> None:
    script = Coordinators({transactional_id or "": [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, None]})
    with ScriptedBroker(script) as broker, Client(f"127.0.0.1:{broker.port}", timeout_s=5.0) as client:
        script.port = broker.port
        assert init_producer_id(client, transactional_id).producer == ProducerIdAndEpoch(7, 1)


def test_all_brokers_are_asked_again_after_one_has_left() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as gone:
        port_of_none = gone.getsockname()[1]
    moved = TransactionState(transactional_id="kaspar-spark:q:1:w:0", producer_id=7, transaction_state="Ongoing")
    listings: list[tuple[TransactionState, ...]] = [(), (moved,)]
    brokers = [(2, port_of_none)]

    def respond(header: RequestHeader, request: Message) -> Message:
        match request:
            case ApiVersionsRequest():
                return api_versions()
            case MetadataRequest():
                known = [(1, broker.port), *([brokers.pop()] if brokers else [])]
                listed = (MetadataResponseBroker(node_id=number, host="127.0.0.1", port=port) for number, port in known)
                return MetadataResponse(brokers=tuple(listed), topics=())
            case ListTransactionsRequest():
                return ListTransactionsResponse(transaction_states=listings.pop(0))
        raise AssertionError(f"not scripted: {request}")

    with ScriptedBroker(respond) as broker, Client(f"127.0.0.1:{broker.port}", timeout_s=5.0) as client:
        (listed,) = list_transactions(client, prefix="kaspar-spark:q:")
    assert listed.transactional_id == moved.transactional_id
