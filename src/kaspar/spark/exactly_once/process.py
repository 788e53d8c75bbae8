"""What a Python process keeps from batch to batch: connections, what it has read of the decision log, and its slots.

Spark's worker processes are forked from one that may have imported this, and are used again for task after task: all of
it is made in the process that uses it, and is kept for as long as the process lives.
"""

import os
import secrets
from dataclasses import dataclass, field
from functools import partial

from kaspar.client.cluster import Client
from kaspar.client.delivery_terms import DeliveryTerms
from kaspar.client.producing import BeforeFirst, RawProducer
from kaspar.client.transactions import add_partitions
from kaspar.spark.exactly_once.attempt import Attempt, Slots
from kaspar.spark.exactly_once.coordinator import BrokerCoordinator
from kaspar.spark.exactly_once.decision_log import DecisionLog
from kaspar.spark.exactly_once.parties import Parties
from kaspar.spark.write_options import WriteOptions


@dataclass(slots=True)
class Process:
    client: Client
    coordinator: BrokerCoordinator
    log: DecisionLog
    slots: Slots
    idle_producer: RawProducer | None = None
    """That of this process's last task, with its connections."""
    announced: set[str] = field(default_factory=set)
    """The queries for which this process has published."""
    _cluster_id: str | None = None

    @property
    def parties(self) -> Parties:
        return Parties(self.log, self.coordinator, self.slots.worker)

    def cluster_id(self) -> str:
        """By which the same brokers are known under whichever addresses."""
        if self._cluster_id is None:
            self._cluster_id = self.client.refresh_metadata([]).cluster_id or ""
        return self._cluster_id

    def producer_of(self, attempt: Attempt, terms: DeliveryTerms) -> RawProducer:
        """A producer for the attempt's transaction, the idle one if it suits."""
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

    @classmethod
    def opened(cls, options: WriteOptions) -> "Process":
        client = options.connection.client()
        coordinator = BrokerCoordinator(client, timeout_ms=options.producer.transaction_timeout_ms)
        return cls(client, coordinator, DecisionLog(client), Slots(secrets.token_hex(6)))


_processes: dict[tuple[int, object], Process] = {}


def this_process(options: WriteOptions) -> Process:
    key = os.getpid(), (options.connection, options.producer.transaction_timeout_ms)
    if key not in _processes:
        _processes[key] = Process.opened(options)
    return _processes[key]
