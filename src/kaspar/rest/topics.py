"""Looks up topics for produce requests, so that an unknown topic is reported at once, not when librdkafka times out.

As with Java producers, looking up a topic creates it where brokers allow that (`auto.create.topics.enable`).
"""

import asyncio
from collections.abc import Callable
from typing import Final

from kaspar.acls.acl import AclOperation
from kaspar.base.bounded_cache import BoundedCache
from kaspar.base.clock import Clock
from kaspar.base.errors import ErrorCode, Refused
from kaspar.callers.identities import Identity
from kaspar.client.admin.session import Admin, accepted, refusal
from kaspar.client.admin.topics import describe_topics_by_metadata
from kaspar.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kaspar.rest.administration import Administration
from kaspar.rest.errors import TOPIC_NOT_FOUND, RestError, from_refusal

KNOWN_FOR_S: Final = 30.0
CREATION_S: Final = 1.0
"""A broker that creates the topic automatically has done so within this time."""
_POLL_S: Final = 0.05
_KNOWN: Final = 10_000
_PENDING: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE})


class KnownTopics:
    """The partition counts of topics, as each identity has seen them within the last KNOWN_FOR_S seconds."""

    def __init__(self, administration: Administration, clock: Clock) -> None:
        self._administration = administration
        self._clock = clock
        self._known: BoundedCache[tuple[Identity, str], int] = BoundedCache(
            _KNOWN, lifetime_s=KNOWN_FOR_S, monotonic=clock.monotonic
        )
        self._lookups: dict[tuple[Identity, str], asyncio.Task[int]] = {}

    async def partition_count(self, identity: Identity, topic: str) -> int:
        """Raises RestError."""
        key = identity, topic
        if (known := self._known.get(key)) is not None:
            return known
        if (lookup := self._lookups.get(key)) is None:
            lookup = asyncio.create_task(self._look_up(identity, topic))
            self._lookups[key] = lookup
            lookup.add_done_callback(lambda done: self._finished(key, done))
        return await asyncio.shield(lookup)  # a lookup may have several waiters

    def _finished(self, key: tuple[Identity, str], lookup: asyncio.Task[int]) -> None:
        del self._lookups[key]
        if not lookup.cancelled():
            lookup.exception()  # marks the exception as retrieved: all waiters may be gone

    async def close(self) -> None:
        for lookup in list(self._lookups.values()):
            lookup.cancel()
        await asyncio.gather(*self._lookups.values(), return_exceptions=True)

    async def check_writable(self, identity: Identity, topic: str) -> None:
        """Raises RestError unless the broker lets the identity write to the topic."""

        def ask(admin: Admin) -> bool:
            found = describe_topics_by_metadata(admin, [topic], include_authorized_operations=True)[topic]
            return AclOperation.WRITE in (accepted(found).authorized_operations or ())

        if not await self._administration.call(identity, ask):
            raise from_refusal(Refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"Not authorized to write to {topic}."))

    def forget(self, topic: str) -> None:
        """Called when the topic was deleted, or its number of partitions has changed."""
        for key in self._known:
            if key[1] == topic:
                self._known.discard(key)

    async def _look_up(self, identity: Identity, topic: str) -> int:
        deadline = self._clock.monotonic() + CREATION_S
        while True:
            count = await self._administration.call(identity, _count_of(topic))
            if count is not None:
                break
            if self._clock.monotonic() > deadline:
                raise RestError(TOPIC_NOT_FOUND)
            await asyncio.sleep(_POLL_S)
        self._known.put((identity, topic), count)
        return count


def _count_of(topic: str) -> Callable[[Admin], int | None]:
    """A call that returns the topic's number of partitions, or None while it does not exist."""

    def ask(admin: Admin) -> int | None:
        request = MetadataRequest(topics=(MetadataRequestTopic(name=topic),), allow_auto_topic_creation=True)
        response = admin.ask_any("describeTopics", request, MetadataResponse)
        (found,) = response.topics
        if found.error_code in _PENDING:
            return None
        if (refused := refusal(found.error_code)) is not None:
            raise from_refusal(refused)
        return len(found.partitions)

    return ask
