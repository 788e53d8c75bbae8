"""When a transaction counts as prepared: not before no partition of it takes a record any more.

A transaction is prepared so that somebody else may decide about it (KIP-939). Whoever hears that it is prepared relies
on it that its records are final. So the rule is: **once InitProducerId has responded that a transaction is prepared,
no record is appended to it, on any partition, by anybody, whatever crashes or moves.** Its partitions may be led by any
broker, and leaders may change at any time. This is how it is kept:

1. The coordinator puts `Prepared` into its log, with a new pair for the owner that is two epochs above that of the
   records: (7, 4) becomes (7, 6). When that is committed, nothing can be added to the transaction any more: leaders
   that ask about (7, 4) or (7, 6) are refused (transactions/partitions.py).
2. Then it has a fence written to every partition of the transaction: an empty transactional batch with the epoch in
   between, (7, 5) (`records.build_fence`). It raises the producer's epoch in the state of the partition.
3. When every fence is committed, the coordinator responds.

Why no record can follow:
- *With the epoch of the records*, (7, 4): the fence is in the log of the partition, and a batch with an older epoch
  than the last is refused there. Which of them came first, the order of the log says. A response of the coordinator to
  a leader that is still on its way when the fence is written is void (`ProducerState.remember_fence`).
- *After a change of leaders*: the fence is committed, so every later leader has it. A broker that believes to lead, but
  does not any more, cannot have it committed, and then there is no response. So the partitions need not be asked who
  leads them, and it does not matter whose image is how old.
- *After a restart, or a move, of the partition's broker*: the epoch is part of the partition's producer state, which is
  rebuilt from the log and its snapshots.
- *With the epoch of the owner*, (7, 6): no partition has a transaction of that epoch open, so its leader asks the
  coordinator first, and is refused, as the transaction is prepared. That is why the fence has an epoch of its own.
- *On partitions that are not part of it*: a first batch there needs the coordinator's word too.
- *After a crash of the coordinator* between 1 and 3: nobody has heard that it is prepared. The next coordinator finds
  it so in the log, does not know how far the fences got, and writes all of them again; partitions that have theirs take
  no second one. Only then does the repeated InitProducerId get its response.

The markers that end it later have an epoch above the fence. A fence that arrives behind them does nothing, since the
partition is at a higher epoch by then.

Nothing of this is asked when records are appended: for a leader, prepared is what its own log says.
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
        """`write` has them written, and `written` or `abandoned` called in the end."""
        self._write = write
        self._by_id: dict[str, _Fencing] = {}

    def begin(self, partition: int, action: WriteFences) -> None:
        """A transaction is prepared in the log, which is committed. One that was taken over has its fences already."""
        known = self._by_id.get(action.transactional_id)
        if known is None or known.action != action:
            self._by_id[action.transactional_id] = _Fencing(partition, action)
            self._write(partition, action)

    def written(self, action: WriteFences) -> None:
        self._settle(action, ErrorCode.NONE)

    def abandoned(self, action: WriteFences) -> None:
        """This broker does not coordinate it any more."""
        self._settle(action, ErrorCode.NOT_COORDINATOR)

    def _settle(self, action: WriteFences, code: ErrorCode) -> None:
        known = self._by_id.get(action.transactional_id)
        if known is not None and known.action == action:
            known.settle(code)

    def ended(self, transactional_id: str) -> None:
        self._by_id.pop(transactional_id, None)

    def forget(self, partition: int) -> None:
        """The shard of this partition is loaded anew, and begins all of its fences again."""
        for transactional_id, known in tuple(self._by_id.items()):
            if known.partition == partition:
                known.settle(ErrorCode.NOT_COORDINATOR)
                del self._by_id[transactional_id]

    async def settled(self, transactional_id: str, within_s: float) -> ErrorCode:
        """NONE when every partition of the prepared transaction has its fence. CONCURRENT_TRANSACTIONS, on which
        clients ask again, if that takes longer.
        """
        known = self._by_id.get(transactional_id)
        if known is None:
            return ErrorCode.CONCURRENT_TRANSACTIONS
        try:
            return await asyncio.wait_for(asyncio.shield(known.outcome), within_s)
        except TimeoutError:
            return ErrorCode.CONCURRENT_TRANSACTIONS
