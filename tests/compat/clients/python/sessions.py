"""What a Python client has to offer, and what is built on it for all alike: polling consumers and transformers."""

import abc
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from tests.compat.clients.api import CommittedOffset, ConsumerOptions, Partition
from tests.compat.drivers.api import CALL_TIMEOUT_SECONDS

T = TypeVar("T")
Row = tuple[str, int, int, str]  # topic, partition, offset, value


class GroupConsumer(abc.ABC):
    """A member of a group. Used by one thread."""

    rebalances = 0

    @abc.abstractmethod
    def poll(self) -> list[Row]:
        """What has come within a tenth of a second or so."""

    @abc.abstractmethod
    def assignment(self) -> set[Partition]: ...

    def commit(self, offsets: Sequence[CommittedOffset] | None, *, wait: bool) -> None:
        raise NotImplementedError

    def committed(self, partitions: Sequence[Partition]) -> list[tuple[str, int, int]]:
        """Topic, partition and offset; -1 or nothing where none is committed."""
        raise NotImplementedError

    def seek(self, topic: str, partition: int, offset: int) -> None:
        raise NotImplementedError

    @abc.abstractmethod
    def close(self) -> None: ...


class TransactionalProducer(abc.ABC):
    @abc.abstractmethod
    def begin(self) -> None: ...

    @abc.abstractmethod
    def send(self, topic: str, partition: int, values: Sequence[str]) -> None: ...

    @abc.abstractmethod
    def send_offsets(self, offsets: Sequence[CommittedOffset], consumer: Any) -> None:
        """`consumer` is of the same library, and polled by the calling thread."""

    @abc.abstractmethod
    def commit(self) -> None: ...

    @abc.abstractmethod
    def abort(self) -> None: ...

    @abc.abstractmethod
    def close(self) -> None: ...


class Groups(abc.ABC):
    """The calls of an admin client about groups, with responses in the form of JSON."""

    @abc.abstractmethod
    def states(self) -> list[Any]:
        """Each group and its state, or null where the client does not report it."""

    @abc.abstractmethod
    def describe(self, group: str) -> dict[str, Any]: ...

    @abc.abstractmethod
    def offsets(self, group: str) -> list[CommittedOffset]: ...

    def delete(self, group: str) -> None:
        raise NotImplementedError

    def set_offsets(self, group: str, offsets: Sequence[CommittedOffset]) -> None:
        raise NotImplementedError

    def delete_offsets(self, group: str, partitions: Sequence[Partition]) -> None:
        raise NotImplementedError


class Library(abc.ABC):
    @abc.abstractmethod
    def consumer(self, options: ConsumerOptions) -> GroupConsumer: ...

    def producer(self, transactional_id: str, timeout_ms: int) -> TransactionalProducer:
        raise NotImplementedError

    def groups(self) -> Groups:
        raise NotImplementedError

    @abc.abstractmethod
    def error_name(self, error: Exception) -> str:
        """Kafka's name, or the client's word for an error of its own."""


class PollingConsumer:
    """Gives a consumer a thread, which polls and between two polls does what it is asked."""

    def __init__(self, consumer: GroupConsumer, error_name: Callable[[Exception], str]) -> None:
        self._consumer = consumer
        self._error_name = error_name
        self._asked: queue.Queue[Callable[[], None] | None] = queue.Queue()
        self._records: list[Row] = []
        self._assignment: set[Partition] = set()
        self._error: str | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def look(self, after: int) -> dict[str, Any]:
        return {
            "assignment": sorted(self._assignment),
            "rebalances": self._consumer.rebalances,
            "records": self._records[after:],
            "error": self._error,
        }

    def ask(self, call: Callable[[GroupConsumer], T]) -> T:
        outcome: Future[T] = Future()

        def run() -> None:
            try:
                outcome.set_result(call(self._consumer))
            except Exception as error:  # reported to the caller
                outcome.set_exception(error)

        self._asked.put(run)
        return outcome.result(CALL_TIMEOUT_SECONDS)

    def close(self) -> None:
        self._asked.put(None)
        self._thread.join(CALL_TIMEOUT_SECONDS)

    def _run(self) -> None:
        while True:
            try:
                asked = self._asked.get(block=self._error is not None)
            except queue.Empty:
                self._poll()
                continue
            if asked is None:
                self._consumer.close()
                return
            asked()

    def _poll(self) -> None:
        try:
            self._records += self._consumer.poll()
            self._assignment = self._consumer.assignment()
        except Exception as error:  # the end of this consumer, reported by the next look at it
            self._error = self._error_name(error)
            self._assignment = set()


class Transformer:
    """Its thread consumes, transforms and produces until it is closed."""

    def __init__(
        self,
        library: Library,
        *,
        target: str,
        transactional_id: str,
        transaction_timeout_ms: int,
        abort_first: bool,
        **options: Any,
    ) -> None:
        self._library = library
        self._target = target
        self._abort_next = abort_first
        self._committed = 0
        self._aborted = 0
        self._error: str | None = None
        self._closed = threading.Event()
        self._producer = library.producer(transactional_id, transaction_timeout_ms)
        self._consumer = library.consumer(ConsumerOptions(**options))
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def look(self) -> dict[str, Any]:
        return {"committed": self._committed, "aborted": self._aborted, "error": self._error}

    def close(self) -> None:
        self._closed.set()
        self._thread.join(CALL_TIMEOUT_SECONDS)

    def _run(self) -> None:
        try:
            while not self._closed.is_set():
                records = self._consumer.poll()
                if records:
                    self._transform(records)
        except Exception as error:  # reported by the next look at it
            self._error = f"{self._library.error_name(error)} {error}"
        finally:
            self._consumer.close()
            self._producer.close()

    def _transform(self, records: Sequence[Row]) -> None:
        by_partition: dict[Partition, list[Row]] = {}
        for row in records:
            by_partition.setdefault((row[0], row[1]), []).append(row)
        self._producer.begin()
        for (_, partition), rows in by_partition.items():
            self._producer.send(self._target, partition, [value.upper() for *_, value in rows])
        ends = [(topic, partition, rows[-1][2] + 1, "") for (topic, partition), rows in by_partition.items()]
        self._producer.send_offsets(ends, self._consumer)
        if self._abort_next:
            self._abort_next = False
            self._producer.abort()
            for (topic, partition), rows in by_partition.items():
                self._consumer.seek(topic, partition, rows[0][2])
            self._aborted += 1
        else:
            self._producer.commit()
            self._committed += 1
