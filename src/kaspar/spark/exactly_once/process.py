"""What a Python process keeps from batch to batch: connections, what it has read of the decision log, and its slots.

Spark's worker processes are forked from one that may have imported this, and are used again for task after task: all of
it is made in the process that uses it, and is kept for as long as the process lives.
"""

import os
import secrets
from dataclasses import dataclass, field

from kaspar.client.cluster import Client
from kaspar.spark.exactly_once.coordinator import BrokerCoordinator
from kaspar.spark.exactly_once.decision_log import DecisionLog
from kaspar.spark.exactly_once.names import BatchName, TransactionName
from kaspar.spark.exactly_once.parties import Parties
from kaspar.spark.write_options import WriteOptions


@dataclass(slots=True)
class Slots:
    """The transactional ids of a process. One is free for a batch if it was last used for an earlier one of the same
    run: a run begins a batch when the one before it is complete."""

    worker: str
    _last_used: dict[tuple[str, int], list[int]] = field(default_factory=dict)

    def take(self, batch: BatchName, generation: int) -> TransactionName:
        used = self._last_used.setdefault((batch.query, generation), [])
        slot = next((slot for slot, last in enumerate(used) if last < batch.batch_id), len(used))
        used[slot : slot + 1] = [batch.batch_id]
        return TransactionName(batch.query, generation, self.worker, slot)


@dataclass(slots=True)
class Process:
    client: Client
    coordinator: BrokerCoordinator
    log: DecisionLog
    slots: Slots

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
