"""The context of the steps of a topology while they process records: the record's context, stores, clocks, outputs.

A task has one TaskContext, whose fields change with every record, so that forwarding a record is a function call with
three arguments. Everything that must outlive a micro-batch is in stores, or in `meta`: numbers that only increase.
"""

import enum
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, TypeVar

from kaspar.streams.serdes import Serde, text

T = TypeVar("T")
Headers: TypeAlias = Sequence[tuple[str, bytes | None]]
Output: TypeAlias = tuple[bytes | None, bytes | None, int, Headers | None, int | None]
"""Key, value, timestamp, headers and partition; None means the partition of the key's hash."""

NO_HEADERS: Headers = ()
UNKNOWN_TIME = -1
MAX_REQUEST_SIZE = 1024 * 1024
"""The default of a producer."""


class OnError(enum.Enum):
    """The handling of a record that cannot be read, processed or written: stop the program, or skip the record."""

    FAIL = "fail"
    CONTINUE = "continue"


@dataclass(frozen=True, slots=True)
class TaskSettings:
    """The settings of a program that its steps depend on."""

    application_id: str
    default_key_serde: Serde[Any] = field(default_factory=text)
    default_value_serde: Serde[Any] = field(default_factory=text)
    on_deserialization_error: OnError = OnError.FAIL
    on_processing_error: OnError = OnError.FAIL
    on_production_error: OnError = OnError.FAIL
    dead_letter_topic: str | None = None
    late_topic: str | None = None
    """The topic for records that arrive after the grace period, if any."""
    max_request_size: int = MAX_REQUEST_SIZE
    """The producer's max.request.size: a larger record cannot be written."""

    @property
    def keeps_raw_records(self) -> bool:
        """Whether the original bytes of records are needed, for the dead-letter topic or the topic for late records."""
        return self.dead_letter_topic is not None or self.late_topic is not None

    def key_serde(self, given: Serde[Any] | None) -> Serde[Any]:
        return self.default_key_serde if given is None else self.resolved(given)

    def value_serde(self, given: Serde[Any] | None) -> Serde[Any]:
        return self.default_value_serde if given is None else self.resolved(given)

    def resolved(self, given: T) -> T:
        """A serde or partitioner with its defaults filled in. Serdes that contain another one, and the partitioner of
        windowed keys, may need the defaults, which are unknown when a topology is built."""
        with_defaults = getattr(given, "with_defaults", None)
        if with_defaults is None:
            return given
        resolved: T = with_defaults(self.default_key_serde, self.default_value_serde)
        return resolved


class Outputs(Protocol):
    """The outputs of a task."""

    def to(self, topic: str) -> Callable[[Output], object]:
        """The function that writes records to a topic. Callers keep it for the life of the task."""

    def partition_count(self, topic: str) -> int: ...


class PunctuationType(enum.Enum):
    STREAM_TIME = "stream-time"
    WALL_CLOCK_TIME = "wall-clock-time"


class Cancellable(Protocol):
    """The return value of schedule()."""

    def cancel(self) -> None: ...


class Punctuator(Protocol):
    """Schedules functions of processors (punctuation.py)."""

    def schedule(
        self, node: str, interval_ms: int, kind: PunctuationType, callback: Callable[[int], None]
    ) -> Cancellable: ...


class Clock:
    """A stream time: the largest timestamp seen. It is kept between micro-batches."""

    __slots__ = ("now",)

    def __init__(self, now: int = UNKNOWN_TIME) -> None:
        self.now = now


class TaskContext:
    """The context of a task. `topic`, `partition`, `offset` and `headers` are those of the current record."""

    def __init__(
        self,
        settings: TaskSettings,
        task_partition: int,
        stores: Mapping[str, Any],
        outputs: Outputs,
        clocks: dict[str, Clock],
        *,
        wall_clock_ms: int = 0,
    ) -> None:
        self.settings = settings
        self.task_partition = task_partition
        self.stores = stores
        self.outputs = outputs
        self.wall_clock_ms = wall_clock_ms
        self.topic = ""
        self.partition = -1
        self.offset = -1
        self.headers: Headers | None = None
        self.raw_key: bytes | None = None
        self.raw_value: bytes | None = None
        self.dropped: Counter[str] = Counter()
        """The number of records not processed, by reason."""
        self.closing: list[Callable[[], object]] = []
        """Functions to call at the end of the task."""
        self.global_stores: frozenset[str] = frozenset()
        """The names of the stores of global tables, which every processor may use."""
        self.punctuations: Punctuator | None = None
        """The schedules of a task; None on the map side."""
        self._clocks = clocks

    @property
    def application_id(self) -> str:
        return self.settings.application_id

    @property
    def stream_time(self) -> Clock:
        """The largest timestamp of all records of the task."""
        return self.clock("task")

    def clock(self, name: str) -> Clock:
        """The stream time of one step, or another number that only increases."""
        found = self._clocks.get(name)
        if found is None:
            found = self._clocks[name] = Clock()
        return found

    def store(self, name: str) -> Any:
        return self.stores[name]

    def drop(self, reason: str) -> None:
        """Count a record that is not processed: `late`, `null-key`, `deserialization`, ..."""
        self.dropped[reason] += 1
