"""When a transaction counts as prepared: once no partition of it accepts further records.

A transaction is prepared so that another system can decide about it (KIP-939). A client that is told that it is
prepared relies on its records being final. So the rule is: **once InitProducerId has responded that a transaction is
prepared, no record is appended to it, on any partition, by any producer, whatever crashes or moves.** Its partitions
may be led by any broker, and leaders may change at any time. The rule is enforced in three steps:

1. The coordinator writes `Prepared` to its log, with a new pair for the owner that is two epochs above that of the
   records: (7, 4) becomes (7, 6). When that is committed, nothing can be added to the transaction any more: leaders
   that ask about (7, 4) or (7, 6) are refused (transactions/partitions.py).
2. It then has a fence written to every partition of the transaction: an empty transactional batch with the epoch in
   between, (7, 5) (`records.build_fence`). The fence raises the producer's epoch in the state of the partition.
3. When every fence is committed, the coordinator responds.

Why no record can follow:
- *With the epoch of the records*, (7, 4): the fence is in the log of the partition, which refuses batches with an older
  epoch than the last one. The order of the log decides which of them came first. A response of the coordinator that is
  on its way to a leader when the fence is written has no effect there (`ProducerState.remember_fence`).
- *After a change of leaders*: the fence is committed, so every later leader has it. A broker that wrongly believes it
  is the leader cannot get it committed, and then there is no response. So it does not matter who leads the partitions,
  or how old any broker's image is.
- *After a restart, or a move, of the partition's broker*: the epoch is part of the partition's producer state, which is
  rebuilt from the log and its snapshots.
- *With the epoch of the owner*, (7, 6): no partition has an open transaction of that epoch, so its leader asks the
  coordinator first, and is refused, as the transaction is prepared. That is why the fence has a separate epoch.
- *On partitions that are not part of it*: a first batch there also needs the coordinator's permission.
- *After a crash of the coordinator* between 1 and 3: no client has been told that the transaction is prepared. The next
  coordinator finds `Prepared` in the log, does not know which fences were written, and writes all of them again;
  partitions that have one ignore it. Only then does the repeated InitProducerId get its response.

The markers that end the transaction later have an epoch above the fence. A fence that arrives after them does nothing,
because the partition is at a higher epoch by then.

Appends check none of this: a leader relies only on its own log.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from kaspar.base.errors import ErrorCode
from kaspar.transactions.actions import WriteFences


@dataclass(slots=True)
class _Fencing:
    partition: int
    action: WriteFences
    outcome: asyncio.Future[ErrorCode] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def settle(self, code: ErrorCode) -> None:
        if not self.outcome.done():
            self.outcome.set_result(code)


class Fences:
    """The prepared transactions that this broker coordinates, and whether their partitions have their fences."""

    def __init__(self, write: Callable[[int, WriteFences], None]) -> None:
        """`write` has fences written; `written` or `abandoned` is called in the end."""
        self._write = write
        self._by_id: dict[str, _Fencing] = {}

    def begin(self, partition: int, action: WriteFences) -> None:
        """Write the fences of a transaction that is prepared in the committed log, unless that has begun already."""
        known = self._by_id.get(action.transactional_id)
        if known is None or known.action != action:
            self._by_id[action.transactional_id] = _Fencing(partition, action)
            self._write(partition, action)

    def written(self, action: WriteFences) -> None:
        self._settle(action, ErrorCode.NONE)

    def abandoned(self, action: WriteFences) -> None:
        """Fail the waiting requests, because this broker no longer coordinates the transaction."""
        self._settle(action, ErrorCode.NOT_COORDINATOR)

    def _settle(self, action: WriteFences, code: ErrorCode) -> None:
        known = self._by_id.get(action.transactional_id)
        if known is not None and known.action == action:
            known.settle(code)

    def ended(self, transactional_id: str) -> None:
        self._by_id.pop(transactional_id, None)

    def forget(self, partition: int) -> None:
        """Forget the fences of this partition, whose shard is loaded again and will begin all of them again."""
        for transactional_id, known in tuple(self._by_id.items()):
            if known.partition == partition:
                known.settle(ErrorCode.NOT_COORDINATOR)
                del self._by_id[transactional_id]

    async def settled(self, transactional_id: str, within_s: float) -> ErrorCode:
        """NONE when every partition of the prepared transaction has its fence; CONCURRENT_TRANSACTIONS, on which
        clients retry, if that takes longer.
        """
        known = self._by_id.get(transactional_id)
        if known is None:
            return ErrorCode.CONCURRENT_TRANSACTIONS
        try:
            return await asyncio.wait_for(asyncio.shield(known.outcome), within_s)
        except TimeoutError:
            return ErrorCode.CONCURRENT_TRANSACTIONS
