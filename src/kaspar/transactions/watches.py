"""What a coordinator knows beside the log, and may forget when it is restarted."""

from kaspar.base.ids import ProducerIdAndEpoch
from kaspar.coordination import Now
from kaspar.transactions.state import NO_EPOCH, Transaction


class _Watch:
    __slots__ = ("start_ms", "touched_ms", "wakes_ms")

    def __init__(self, now_ms: int) -> None:
        self.start_ms = now_ms
        self.touched_ms = now_ms
        self.wakes_ms: int | None = None


class Watches:
    """When each transaction began and each id was last used, on the steady clock: a wall clock that jumps ends none of
    them. Only a coordinator that is loaded has nothing but the times in the log to begin with.

    An id keeps one timer. It is not moved when its transaction ends and the next begins: when it fires, somebody looks.
    """

    def __init__(self) -> None:
        self._by_id: dict[str, _Watch] = {}

    def loaded(self, transaction: Transaction, now: Now) -> None:
        watch = self._by_id[transaction.transactional_id] = _Watch(now.steady_ms)
        watch.start_ms -= max(0, now.wall_ms - transaction.start_ms)
        watch.touched_ms -= max(0, now.wall_ms - transaction.last_update_ms)

    def touched(self, transactional_id: str, now: Now) -> None:
        watch = self._by_id.get(transactional_id)
        if watch is None:
            self._by_id[transactional_id] = _Watch(now.steady_ms)
        else:
            watch.touched_ms = now.steady_ms

    def started(self, transactional_id: str, now: Now) -> None:
        self._by_id[transactional_id].start_ms = now.steady_ms

    def start_ms(self, transactional_id: str) -> int:
        return self._by_id[transactional_id].start_ms

    def idle_ms(self, transactional_id: str, now: Now) -> int:
        return now.steady_ms - self._by_id[transactional_id].touched_ms

    def wakes_by(self, transactional_id: str, at_ms: int) -> bool:
        """Whether a timer is set that fires no later than that. If not, one has to be set, and counts as set."""
        watch = self._by_id[transactional_id]
        if watch.wakes_ms is not None and watch.wakes_ms <= at_ms:
            return True
        watch.wakes_ms = at_ms
        return False

    def woke(self, transactional_id: str) -> None:
        watch = self._by_id.get(transactional_id)
        if watch is not None:
            watch.wakes_ms = None

    def forget(self, transactional_id: str) -> None:
        self._by_id.pop(transactional_id, None)


class LastEpochs:
    """The epoch that a client had before the one it was told last, which it names when that answer was lost. Kafka
    keeps it beside the log too: after a restart such a client is fenced, and starts anew.

    It counts for one pair only. So what is remembered of a step that the log then refused does no harm.
    """

    def __init__(self) -> None:
        self._by_id: dict[str, tuple[ProducerIdAndEpoch, int]] = {}

    def raised(self, before: Transaction, after: Transaction) -> None:
        told, tells = before.client_producer, after.client_producer
        self._by_id[after.transactional_id] = (tells, told.producer_epoch)

    def of(self, transaction: Transaction) -> int:
        tells, epoch = self._by_id.get(transaction.transactional_id, (None, NO_EPOCH))
        return epoch if tells == transaction.client_producer else NO_EPOCH

    def forget(self, transactional_id: str) -> None:
        self._by_id.pop(transactional_id, None)
