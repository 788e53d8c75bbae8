"""A ticket is completed once, without delay, and with the response of its version."""

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


def test_a_waiter_gets_the_response_when_it_comes() -> None:
    heard: list[Message] = []
    waiting: set[RequestTicket] = set()
    ticket = new_ticket().wait_among(waiting)
    ticket.on_response(heard.append)
    assert (heard, waiting) == ([], {ticket})
    ticket.refuse(ErrorCode.NOT_COORDINATOR)
    assert (heard, waiting) == ([REFUSED], set())


def test_the_first_response_counts() -> None:
    heard: list[Message] = []
    ticket = new_ticket()
    ticket.on_response(heard.append)
    ticket.respond(TAKEN)
    ticket.respond(REFUSED)
    ticket.refuse(ErrorCode.REQUEST_TIMED_OUT)
    assert heard == [TAKEN]


def test_an_available_response_is_delivered_at_once() -> None:
    heard: list[Message] = []
    ticket = new_ticket()
    ticket.respond(TAKEN)
    ticket.on_response(heard.append)
    assert heard == [TAKEN]


@pytest.mark.parametrize("responded_before", [True, False])
def test_a_ticket_can_be_awaited(responded_before: bool) -> None:
    async def scenario() -> None:
        ticket = new_ticket()
        if responded_before:
            ticket.respond(TAKEN)
        else:
            asyncio.get_running_loop().call_soon(ticket.respond, TAKEN)
        assert await ticket is TAKEN

    asyncio.run(scenario())


def test_a_cancelled_wait_has_no_effect() -> None:
    async def scenario() -> None:
        ticket = new_ticket()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(_heard(ticket), 0)
        ticket.respond(TAKEN)
        assert ticket.message is TAKEN

    asyncio.run(scenario())


async def _heard(ticket: RequestTicket) -> Message:
    return await ticket


def test_an_older_client_hears_an_older_form() -> None:
    heard: list[Message] = []
    ticket = translated(new_ticket(), without_code)
    assert isinstance(ticket, RequestTicket)
    ticket.on_response(heard.append)
    ticket.respond(REFUSED)
    assert heard == [TAKEN]
    assert translated(REFUSED, without_code) is TAKEN
