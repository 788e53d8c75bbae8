"""What a process keeps from batch to batch: connections, the replayed decision log, and its slots."""

import secrets
from dataclasses import dataclass, field
from functools import partial

from kaspar.client.cluster import Client
from kaspar.client.delivery_terms import DeliveryTerms
from kaspar.client.producing import BeforeFirst, RawProducer
from kaspar.client.transactions import add_partitions
from kaspar.exactly_once.attempt import Attempt, Slots
from kaspar.exactly_once.coordinator import BrokerCoordinator
from kaspar.exactly_once.decision_log import DecisionLog
from kaspar.exactly_once.participants import Participants


@dataclass(slots=True)
class ProcessState:
    """Not thread-safe."""

    client: Client
    coordinator: BrokerCoordinator
    log: DecisionLog
    slots: Slots
    idle_producer: RawProducer | None = None
    """The producer of this process's last task, with its connections."""
    announced: set[str] = field(default_factory=set)
    """The queries whose kind of transactions this process has printed."""
    _cluster_id: str | None = None

    @classmethod
    def of(cls, client: Client, *, transaction_timeout_ms: int | None = None) -> "ProcessState":
        coordinator = BrokerCoordinator(client, timeout_ms=transaction_timeout_ms)
        return cls(client, coordinator, DecisionLog(client), Slots(secrets.token_hex(6)))

    @property
    def participants(self) -> Participants:
        return Participants(self.log, self.coordinator, self.slots.worker)

    def cluster_id(self) -> str:
        """The cluster id, which is the same whichever addresses were used to connect."""
        if self._cluster_id is None:
            self._cluster_id = self.client.refresh_metadata([]).cluster_id or ""
        return self._cluster_id

    def producer_of(self, attempt: Attempt, terms: DeliveryTerms) -> RawProducer:
        """A producer for the attempt's transaction: the idle one if its terms are the same."""
        before_first: BeforeFirst | None = None
        if self.coordinator.adds_partitions:
            before_first = partial(add_partitions, self.client, attempt.transactional_id, attempt.producer)
        idle, self.idle_producer = self.idle_producer, None
        if idle is not None and idle.terms == terms:
            idle.renew(attempt.producer, transactional_id=attempt.transactional_id, before_first=before_first)
            return idle
        if idle is not None:
            idle.close()
        return RawProducer(
            self.client,
            producer=attempt.producer,
            terms=terms,
            transactional_id=attempt.transactional_id,
            before_first=before_first,
        )
