"""What the coordinators of groups and of transactions have in common: pure shards of state over an internal topic.

A shard decides without changing durable state: it returns records, replies and timers (`Decision`). Its runtime appends
the records as one batch. The shard replays each of them, as it does after a restart; replies are sent when the batch is
committed. So state changes in one way only, and a replay of the log results in the same state.
"""

from kaspar.coordination.decision import (
    Action,
    AnyRecord,
    Decision,
    EncodedRecord,
    IfRefused,
    Now,
    Reply,
    StoredRecord,
    Ticket,
    Timer,
)
from kaspar.coordination.placing import partition_for
from kaspar.coordination.shard import Shard

__all__ = [
    "Action",
    "AnyRecord",
    "Decision",
    "EncodedRecord",
    "IfRefused",
    "Now",
    "Reply",
    "Shard",
    "StoredRecord",
    "Ticket",
    "Timer",
    "partition_for",
]
