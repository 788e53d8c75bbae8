"""What the coordinators of groups and of transactions have in common: pure shards of state over an internal topic.

A shard decides, and changes no durable state while it does: it hands out records, replies and timers (`Decision`). Its
shell appends the records as one batch; the shard takes each of them in (`replay`), in the same words as after a
restart; replies go out when the batch is committed. So there is one way in which state comes to be, and a replay of
the log gives the same state.
"""

from kaspar.coordination.decision import Action, Decision, Now, OneRecord, Reply, StoredRecord, Ticket, Timer
from kaspar.coordination.placing import partition_for
from kaspar.coordination.shard import Shard

__all__ = [
    "Action",
    "Decision",
    "Now",
    "OneRecord",
    "Reply",
    "Shard",
    "StoredRecord",
    "Ticket",
    "Timer",
    "partition_for",
]
