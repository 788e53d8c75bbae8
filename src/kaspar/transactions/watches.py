"""State of a coordinator that is not in the log and may be lost in a restart."""

from kaspar.base.ids import ProducerIdAndEpoch
from kaspar.coordination import Now
from kaspar.transactions.state import NO_EPOCH, Transaction


class Watches:
    """When each transaction began and each id was last used, by the steady clock, so that a jump of the wall clock ends
    no transaction. Only the log has the times from before the shard was loaded. They are compared with the believed
    time of now, so that corrections of a clock that was wrong at the start take effect. But they are at least as old as
    the shard, so that a clock that went back keeps nothing open.

    An id has one timer. It is not moved when its transaction ends and the next begins: the deadline is checked when it
    fires.
    """

    def __init__(self) -> None:
        self._loaded_ms = 0
        self._started_ms: dict[str, int] = {}
        self._touched_ms: dict[str, int] = {}
        self._wakes_ms: dict[str, int] = {}

    def loaded(self, now: Now) -> None:
        self._loaded_ms = now.steady_ms

    def touched(self, transactional_id: str, now: Now) -> None:
        self._touched_ms[transactional_id] = now.steady_ms

    def started(self, transactional_id: str, now: Now) -> None:
        self._started_ms[transactional_id] = now.steady_ms

    def least_deadline_ms(self, transaction: Transaction, patience_ms: int) -> int:
        """The least deadline of a transaction from before the shard was loaded: this time after that. 0 for others."""
        return 0 if transaction.transactional_id in self._started_ms else self._loaded_ms + patience_ms

    def age_ms(self, transaction: Transaction, now: Now) -> int:
        """How long ago the transaction began."""
        started_ms = self._started_ms.get(transaction.transactional_id)
        return self._since(started_ms, transaction.start_ms, now)

    def idle_ms(self, transaction: Transaction, now: Now) -> int:
        """How long ago its id was last used."""
        touched_ms = self._touched_ms.get(transaction.transactional_id)
        return self._since(touched_ms, transaction.last_update_ms, now)

    def wakes_by(self, transactional_id: str, at_ms: int) -> bool:
        """Whether a timer is set that fires no later than that. If not, the caller has to set one."""
        wakes_ms = self._wakes_ms.get(transactional_id)
        if wakes_ms is not None and wakes_ms <= at_ms:
            return True
        self._wakes_ms[transactional_id] = at_ms
        return False

    def woke(self, transactional_id: str) -> None:
        self._wakes_ms.pop(transactional_id, None)

    def forget(self, transactional_id: str) -> None:
        for known in (self._started_ms, self._touched_ms, self._wakes_ms):
            known.pop(transactional_id, None)

    def _since(self, steady_ms: int | None, stored_ms: int, now: Now) -> int:
        if steady_ms is not None:
            return now.steady_ms - steady_ms
        return max(now.believed_ms - stored_ms, now.steady_ms - self._loaded_ms)


class LastEpochs:
    """The epoch that a client had before its current one, and that it sends if a response was lost. In Kafka it is not
    in the log either: after a restart such a client is fenced, and starts again.

    It is valid for one pair only. So it does no harm if the log refuses the step for which it was remembered.
    """

    def __init__(self) -> None:
        self._by_id: dict[str, tuple[ProducerIdAndEpoch, int]] = {}

    def raised(self, before: Transaction, after: Transaction) -> None:
        old, new = before.client_producer, after.client_producer
        self._by_id[after.transactional_id] = (new, old.producer_epoch)

    def of(self, transaction: Transaction) -> int:
        known, epoch = self._by_id.get(transaction.transactional_id, (None, NO_EPOCH))
        return epoch if known == transaction.client_producer else NO_EPOCH

    def forget(self, transactional_id: str) -> None:
        self._by_id.pop(transactional_id, None)
