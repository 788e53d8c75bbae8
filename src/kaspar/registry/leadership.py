"""Leadership as the service uses it: the group's election, and the writer, which follows its result."""

import asyncio
from contextlib import suppress

from kaspar.client.async_client import AsyncClient
from kaspar.registry.election.elector import Elector
from kaspar.registry.election.identity import Identity
from kaspar.registry.election.membership import GroupTerms
from kaspar.registry.interfaces import LogRecord
from kaspar.registry.log.follower import LogFollower
from kaspar.registry.log.producer import TransactionalProducer
from kaspar.registry.log.writer import LogWriter


class GroupLeadership:
    def __init__(
        self,
        client: AsyncClient,
        follower: LogFollower,
        terms: GroupTerms,
        identity: Identity,
        *,
        topic: str,
        noop: LogRecord,
        timeout_s: float,
    ) -> None:
        self._decided = asyncio.Event()
        self.elector = Elector(client, terms, identity, self._elected)
        producer = TransactionalProducer(client, topic, f"{terms.group_id}-{topic}")
        self.writer = LogWriter(follower, producer, noop, timeout_s=timeout_s, on_fenced=self.elector.rejoin)

    @property
    def is_leader(self) -> bool:
        return self.writer.is_leading and self.elector.is_leader

    @property
    def leader_url(self) -> str | None:
        leader = self.elector.leader
        if leader is None or (self.elector.is_elected and not self.writer.is_leading):
            return None
        return leader.url

    async def ready(self) -> None:
        await self.writer.ready()

    async def leader_known(self, *, first_within_s: float, next_within_s: float) -> None:
        """Return once a leader is known, or after the time limit.

        The first election takes longer than later ones: brokers wait for more members of a new group, and create the
        internal topics for groups and transactions. If this instance wins it, the call also waits until the instance is
        ready.
        """
        if self._decided.is_set():
            return
        with suppress(TimeoutError):
            if not self.elector.has_joined:
                async with asyncio.timeout(first_within_s):
                    await self.elector.joined()
                    await self.writer.settled()
            async with asyncio.timeout(next_within_s):
                await self._decided.wait()

    def _elected(self) -> None:
        """Called at every change, so a leader that is re-elected has stepped down in between."""
        if self.elector.is_elected:
            if not self.writer.is_leading:
                self.writer.lead()
        elif self.writer.is_leading:
            self.writer.step_down()
        if self.leader_url is None:
            self._decided.clear()
        else:
            self._decided.set()

    async def stop(self) -> None:
        """Leave the group after the last write, so that the next leader starts at once."""
        await self.writer.close()
        await self.elector.stop()
