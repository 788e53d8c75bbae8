"""Who waits for a coordinator's answer hears it once, at once, and in the words of its version."""

import asyncio

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.broker.coordination.tickets import RequestTicket, translated
from kaspar.protocol.messages.heartbeat import HeartbeatResponse
from kaspar.protocol.schema import Message

TAKEN = HeartbeatResponse()
REFUSED = HeartbeatResponse(error_code=ErrorCode.NOT_COORDINATOR)


def new_ticket() -> RequestTicket:
    return RequestTicket(lambda code: HeartbeatResponse(error_code=code))


def without_code(message: Message) -> Message:
    return TAKEN


def test_whoever_waits_hears_the_answer_when_it_is_given() -> None:
    heard: list[Message] = []
    waiting: set[RequestTicket] = set()
    ticket = new_ticket().wait_among(waiting)
    ticket.when_answered(heard.append)
    assert (heard, waiting) == ([], {ticket})
    ticket.refuse(ErrorCode.NOT_COORDINATOR)
    assert (heard, waiting) == ([REFUSED], set())


def test_the_first_answer_counts() -> None:
    heard: list[Message] = []
    ticket = new_ticket()
    ticket.when_answered(heard.append)
    ticket.answer(TAKEN)
    ticket.answer(REFUSED)
    ticket.refuse(ErrorCode.REQUEST_TIMED_OUT)
    assert heard == [TAKEN]


def test_an_answer_that_is_there_is_heard_at_once() -> None:
    heard: list[Message] = []
    ticket = new_ticket()
    ticket.answer(TAKEN)
    ticket.when_answered(heard.append)
    assert heard == [TAKEN]


@pytest.mark.parametrize("answered_before", [True, False])
def test_a_ticket_can_be_awaited(answered_before: bool) -> None:
    async def scenario() -> None:
        ticket = new_ticket()
        if answered_before:
            ticket.answer(TAKEN)
        else:
            asyncio.get_running_loop().call_soon(ticket.answer, TAKEN)
        assert await ticket is TAKEN

    asyncio.run(scenario())


def test_whoever_stops_waiting_harms_nobody() -> None:
    async def scenario() -> None:
        ticket = new_ticket()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(_heard(ticket), 0)
        ticket.answer(TAKEN)
        assert ticket.message is TAKEN

    asyncio.run(scenario())


async def _heard(ticket: RequestTicket) -> Message:
    return await ticket


def test_an_older_client_hears_an_older_form() -> None:
    heard: list[Message] = []
    ticket = translated(new_ticket(), without_code)
    assert isinstance(ticket, RequestTicket)
    ticket.when_answered(heard.append)
    ticket.answer(REFUSED)
    assert heard == [TAKEN]
    assert translated(REFUSED, without_code) is TAKEN
