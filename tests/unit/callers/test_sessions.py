"""Sessions of administrators, kept for callers."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.callers.identities import SERVICE, Identity
from kaspar.callers.sessions import AdminSessions
from kaspar.web.identity import Scheme

ALICE = Identity("alice", Scheme.BASIC, "secret")
BOB = Identity("bob", Scheme.BASIC, "secret")


@dataclass
class Session:
    identity: Identity
    is_closed: bool = False

    def close(self) -> None:
        self.is_closed = True


@dataclass
class Clients:
    """Counts the sessions that are made."""

    made: list[Session] = field(default_factory=list)

    def new_admin(self, identity: Identity) -> Session:
        self.made.append(Session(identity))
        return self.made[-1]


class Final(Exception):
    """An error of a service, after which a session can be used again."""


async def _sessions(run: Callable[[AdminSessions, Clients], Any], *, identities: int = 2) -> Clients:
    clients = Clients()
    sessions = AdminSessions(clients, identities=identities, final=(Final,), name="test")  # type: ignore[arg-type]
    try:
        await run(sessions, clients)
    finally:
        await sessions.close()
    return clients


def _raise(problem: Exception) -> Callable[[Any], None]:
    def function(admin: Any) -> None:
        raise problem

    return function


def test_calls_of_one_identity_share_a_session_and_those_of_another_do_not() -> None:
    async def run(sessions: AdminSessions, clients: Clients) -> None:
        for _ in range(3):
            assert await sessions.call(ALICE, lambda admin: id(admin)) == id(clients.made[0])
        await sessions.call(BOB, lambda admin: None)

    clients = asyncio.run(_sessions(run))
    assert [each.identity for each in clients.made] == [ALICE, BOB]
    assert all(each.is_closed for each in clients.made), "closing them closes idle sessions"


@pytest.mark.parametrize("problem", [Refused(ErrorCode.INVALID_REQUEST, "no"), Final()])
def test_a_session_is_kept_after_a_refusal(problem: Exception) -> None:
    async def run(sessions: AdminSessions, clients: Clients) -> None:
        with pytest.raises(type(problem)):
            await sessions.call(ALICE, _raise(problem))
        await sessions.call(ALICE, lambda admin: None)
        assert len(clients.made) == 1
        assert not clients.made[0].is_closed

    asyncio.run(_sessions(run))


def test_a_session_is_not_kept_after_a_lost_connection() -> None:
    async def run(sessions: AdminSessions, clients: Clients) -> None:
        with pytest.raises(ConnectionResetError):
            await sessions.call(ALICE, _raise(ConnectionResetError("gone")))
        await sessions.call(ALICE, lambda admin: None)
        assert [each.is_closed for each in clients.made] == [True, False]

    asyncio.run(_sessions(run))


def test_sessions_are_closed_of_the_identity_that_was_not_used_for_longest() -> None:
    async def run(sessions: AdminSessions, clients: Clients) -> None:
        for identity in (SERVICE, ALICE, BOB):
            await sessions.call(identity, lambda admin: None)
        assert [each.is_closed for each in clients.made] == [True, False, False]

    asyncio.run(_sessions(run))
