"""What a Python process keeps from batch to batch: connections, what it has read of the decision log, and its slots.

Spark's worker processes are forked from one that may have imported this, and are used again for task after task: all of
it is made in the process that uses it, and is kept for as long as the process lives.
"""

import os
import secrets
from dataclasses import dataclass, field

from kaspar.client.cluster import Client
from kaspar.spark.exactly_once.attempt import Slots
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
    told_of_timeouts: set[str] = field(default_factory=set)
    """The queries for which it was said that these brokers cannot prepare transactions."""

    @property
    def parties(self) -> Parties:
        return Parties(self.log, self.coordinator, self.slots.worker)

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
