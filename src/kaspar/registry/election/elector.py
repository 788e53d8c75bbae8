"""The task that keeps this instance in the registry's group: sends the requests of membership.py. It has its own
connection, since the coordinator holds a JoinGroup until the other members have joined.

A leader whose heartbeats get no response for the session timeout stops reporting itself as the leader: by then the
coordinator may have elected another one. This only helps clients. Safety comes from the new leader's producer, which
fences the old one.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from kaspar.base.error_codes import RETRIABLE
from kaspar.base.errors import KasparError, Refused
from kaspar.base.log import get_log
from kaspar.client.async_client import AsyncClient
from kaspar.client.asynchronous import AsyncConnection
from kaspar.client.coordinators import CoordinatorKind, find_coordinators
from kaspar.protocol.messages.heartbeat import HeartbeatRequest
from kaspar.protocol.schema import Message
from kaspar.registry.election.identity import Identity
from kaspar.registry.election.membership import GroupTerms, Membership, NextStep, Phase

log = get_log(__name__)

_BACKOFF_S: Final = 0.1
_LEAVE_TIMEOUT_S: Final = 2.0
_JOIN_GRACE_S: Final = 5.0  # beyond the rebalance timeout, as in Kafka's AbstractCoordinator


class Elector:
    def __init__(
        self,
        client: AsyncClient,
        terms: GroupTerms,
        identity: Identity,
        on_change: Callable[[], None],
        *,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """`on_change` is called whenever the leader may have changed. `client` looks up the coordinator."""
        self._client = client
        self._membership = Membership(terms, identity)
        self._terms = terms
        self._on_change = on_change
        self._clock_s = clock_s
        self._confirmed_s = clock_s()
        self._is_joining = False
        self._wake = asyncio.Event()
        self._joined = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._connection: AsyncConnection | None = None
        self._reported: str | None = None

    # --- Interface of the instance ------------------------------------------------------------------------------------

    @property
    def is_elected(self) -> bool:
        """Whether this instance won the last election that it knows of."""
        return self._membership.is_leader

    @property
    def is_leader(self) -> bool:
        """Whether it was elected and has contact with the coordinator."""
        return self._membership.is_leader and self._is_in_contact()

    @property
    def leader(self) -> Identity | None:
        """None while there is no leader, or while this instance was leading and may have been replaced."""
        if self._membership.is_leader and not self._is_in_contact():
            return None
        return self._membership.leader

    @property
    def problem(self) -> str | None:
        """Why this instance is not in a valid group; None if it is."""
        return self._membership.problem or self._reported

    def _is_in_contact(self) -> bool:
        """The coordinator expects no heartbeats while a JoinGroup waits for the other members."""
        silent_s = self._clock_s() - self._confirmed_s
        return self._is_joining or silent_s < self._terms.session_timeout_ms / 1000

    def rejoin(self) -> None:
        """Take part in a new election, without claiming to lead."""
        self._membership.rejoin()
        self._wake.set()
        self._on_change()

    # --- Start and stop -----------------------------------------------------------------------------------------------

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run(), name="registry election")

    @property
    def has_joined(self) -> bool:
        """Whether this instance has taken part in an election."""
        return self._joined.is_set()

    async def joined(self) -> None:
        """Return after the first election, whatever its result."""
        await self._joined.wait()

    async def stop(self) -> None:
        """Leave the group, so that the other members elect a leader at once."""
        if self._task is None:
            return
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        self._task = None
        leave = self._membership.leave_request()
        try:
            if leave is not None:
                connection = self._connection
                if connection is None or connection.is_closed or self._is_joining:
                    connection = await self._connect()
                await connection.request(leave, timeout_s=_LEAVE_TIMEOUT_S)
        except (OSError, KasparError) as problem:
            log.info("leaving the registry's group failed; the other members wait for the session timeout", why=problem)
        finally:
            if self._connection is not None:
                await self._connection.close()

    # --- Task ---------------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        while True:
            try:
                connection = await self._connect()
                self._reported = None
                while True:
                    if not await self._exchange(connection):
                        break
            except (OSError, KasparError) as problem:
                self._report(problem)
            except Exception:
                log.exception("unexpected error in the election of the registry's leader; continuing")
            self._membership.on_disconnect()
            self._is_joining = False
            self._client.core.forget_coordinator(CoordinatorKind.GROUP, self._terms.group_id)
            await asyncio.sleep(_BACKOFF_S)

    async def _connect(self) -> AsyncConnection:
        if self._connection is not None:
            self._connection.abort()
        group_id = self._terms.group_id
        places = await self._client.run(find_coordinators(self._client.core, CoordinatorKind.GROUP, [group_id]))
        self._connection = await AsyncConnection.connect(
            *places[group_id], client_id=self._client.client_id, security=self._client.security
        )
        return self._connection

    async def _exchange(self, connection: AsyncConnection) -> bool:
        """Send the next request and apply its response. Returns False if the coordinator must be looked up again."""
        request = self._membership.next_request()
        sent_s = self._clock_s()
        self._is_joining = not isinstance(request, HeartbeatRequest)
        response = await connection.request(request, timeout_s=self._timeout_s(request))
        was = self._membership.phase, self._membership.leader, self._membership.is_leader
        step = self._membership.apply(response)
        if self._membership.phase is Phase.STABLE:
            self._is_joining = False
            if step is NextStep.AFTER_HEARTBEAT_INTERVAL:
                self._confirmed_s = sent_s if isinstance(request, HeartbeatRequest) else self._clock_s()
        if was != (self._membership.phase, self._membership.leader, self._membership.is_leader):
            self._changed()
        match step:
            case NextStep.AT_ONCE:
                return True
            case NextStep.AFTER_HEARTBEAT_INTERVAL:
                await self._pause()
                return True
            case NextStep.AFTER_BACKOFF:
                await asyncio.sleep(_BACKOFF_S)
                return True
            case NextStep.TO_ANOTHER_COORDINATOR:
                return False

    def _timeout_s(self, request: Message) -> float:
        """The coordinator is looked up again if it does not respond to a heartbeat within the session timeout."""
        if isinstance(request, HeartbeatRequest):
            return self._terms.session_timeout_ms / 1000
        return self._terms.rebalance_timeout_ms / 1000 + _JOIN_GRACE_S

    async def _pause(self) -> None:
        """Wait until the next heartbeat is due, or until `rejoin`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._terms.heartbeat_interval_ms / 1000):
                await self._wake.wait()
        self._wake.clear()

    def _changed(self) -> None:
        membership = self._membership
        if membership.phase is Phase.STABLE:
            self._joined.set()
            if membership.problem is not None:
                log.error(
                    "the registry's group has no valid leader", group=self._terms.group_id, why=membership.problem
                )
            else:
                log.info(
                    "the registry's group elected a leader",
                    group=self._terms.group_id,
                    generation=membership.generation_id,
                    leader=membership.leader.url if membership.leader else "none: no member is eligible",
                    is_leader=membership.is_leader,
                )
        self._on_change()

    def _report(self, problem: Exception) -> None:
        """Log the problem, unless it is the same as at the previous attempt."""
        text = str(problem)
        if text != self._reported:
            self._reported = text
            needs_help = isinstance(problem, Refused) and problem.code not in RETRIABLE
            level = log.error if needs_help else log.warning
            level("the registry has lost contact with its group", group=self._terms.group_id, why=text)
