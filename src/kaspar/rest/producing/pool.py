"""The shared producers: one per identity."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias

from kaspar.callers.clients import KafkaClients
from kaspar.callers.identities import Identity
from kaspar.rest.errors import UNKNOWN_TOPIC_OR_PARTITION
from kaspar.rest.producing.outcomes import Outcome, OutgoingRecord, Undelivered
from kaspar.rest.producing.producer import SharedProducer
from kaspar.rest.topics import KnownTopics

_CLOSING_S: Final = 5.0

WaitForOutcomes: TypeAlias = Callable[[], Awaitable[list[Outcome]]]
"""Returns the outcomes of submitted records, in their order. It is called once."""


class Producers:
    def __init__(self, clients: KafkaClients, topics: KnownTopics, *, identities: int, max_waiting: int) -> None:
        """Producers are kept for at most `identities` callers. `max_waiting` is how many requests may wait for space in
        the buffer of one producer."""
        self._clients = clients
        self._topics = topics
        self._identities = identities
        self._max_waiting = max_waiting
        self._producers: OrderedDict[Identity, SharedProducer] = OrderedDict()

    async def produce(self, identity: Identity, topic: str, records: Sequence[OutgoingRecord]) -> list[Outcome]:
        """The outcomes, in the order of the records. Raises RestError if the whole request is rejected: the topic does
        not exist (40401), or too many requests are waiting."""
        return await (await self.submit(identity, topic, records))()

    async def submit(self, identity: Identity, topic: str, records: Sequence[OutgoingRecord]) -> WaitForOutcomes:
        """Returns once librdkafka has accepted the records, so that records submitted later are written after them.
        Raises the same errors as `produce`."""
        await self._topics.partition_count(identity, topic)
        producer = self._producer(identity)
        batch = await producer.submit(topic, records)

        async def wait() -> list[Outcome]:
            outcomes = await batch.wait()
            return await self._with_new_partitions(identity, producer, topic, records, outcomes)

        return wait

    async def _with_new_partitions(
        self,
        identity: Identity,
        producer: SharedProducer,
        topic: str,
        records: Sequence[OutgoingRecord],
        outcomes: list[Outcome],
    ) -> list[Outcome]:
        """Retries records that failed because librdkafka did not know their partition yet."""
        missed = [index for index, outcome in enumerate(outcomes) if _is_unknown(outcome)]
        if missed:
            self._topics.forget(topic)
            again = await self._in_new_partitions(identity, topic, records, missed)
            if again:
                await producer.refresh(topic)
                produced = await producer.produce(topic, [records[index] for index in again])
                for index, outcome in zip(again, produced, strict=True):
                    outcomes[index] = outcome
        return outcomes

    async def _in_new_partitions(
        self, identity: Identity, topic: str, records: Sequence[OutgoingRecord], missed: Sequence[int]
    ) -> list[int]:
        """The indexes of records whose partition exists although librdkafka does not know it yet: a Java producer would
        refresh its metadata before it fails. None of their records was written, so a retry keeps the order."""
        if all(records[index].partition < 0 for index in missed):
            return []
        count = await self._topics.partition_count(identity, topic)
        return [index for index in missed if 0 <= records[index].partition < count]

    def prepare(self, identity: Identity) -> None:
        """Connect before the first request, because an idempotent producer takes half a second to get its id."""
        self._producer(identity)

    def _producer(self, identity: Identity) -> SharedProducer:
        producer = self._producers.get(identity)
        if producer is not None and producer.is_broken:
            producer.retire()
            producer = None
        if producer is None:
            producer = SharedProducer(self._clients, identity, max_waiting=self._max_waiting)
            self._producers[identity] = producer
        self._producers.move_to_end(identity)
        if len(self._producers) > self._identities:
            self._producers.popitem(last=False)[1].retire()
        return producer

    async def close(self) -> None:
        """Flushes accepted records, within a time limit."""
        producers = list(self._producers.values())
        self._producers.clear()
        await asyncio.gather(*(each.close(_CLOSING_S) for each in producers))


def _is_unknown(outcome: Outcome) -> bool:
    return isinstance(outcome, Undelivered) and outcome.kind is UNKNOWN_TOPIC_OR_PARTITION
