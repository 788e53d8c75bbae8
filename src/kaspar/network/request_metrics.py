"""Where the time of requests goes, for each API: Kafka's RequestMetrics.

Nearly every request gets its response as soon as it arrives: it does not wait in a queue, for an event or for a
throttle, and its local time is its total time. Such a request is recorded with `inline()`, which records one duration
and one size. Every other request is recorded with `delayed()`: it was handled, then it waited for something, which is
its remote time. The zeros of both are added when the metrics page is read.

Kafka counts each fetch twice, as Fetch and as FetchConsumer or FetchFollower. Here only the second is recorded, and the
first is their sum, computed when it is read. The error codes of fetches are counted only for Fetch.
"""

import functools
import operator
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, TypeVar

from kaspar.base.errors import ErrorCode
from kaspar.base.metrics import DIRECT_BUCKETS, DIRECT_VALUES, Distribution, Histogram, bucket_of
from kaspar.protocol.error_counts import ErrorCounts

MAX_VERSIONS: Final = 64  # no API of Kafka is beyond version 18
FETCH: Final = "Fetch"
FETCH_CONSUMER: Final = "FetchConsumer"
FETCH_FOLLOWER: Final = "FetchFollower"

LOCAL_TIME: Final = "LocalTimeMs"
TOTAL_TIME: Final = "TotalTimeMs"
REMOTE_TIME: Final = "RemoteTimeMs"
THROTTLE_TIME: Final = "ThrottleTimeMs"
REQUEST_TIMES: Final = (
    "RequestQueueTimeMs",
    LOCAL_TIME,
    REMOTE_TIME,
    THROTTLE_TIME,
    "ResponseQueueTimeMs",
    "ResponseSendTimeMs",
    TOTAL_TIME,
)


_NO_TIMES: Final = Histogram().distribution()


class _Waits(NamedTuple):
    """The times of requests that had to wait."""

    local: Histogram
    remote: Histogram
    total: Histogram


class RequestMetrics:
    """The metrics of one API. Written by the event loop's thread."""

    __slots__ = ("_delayed", "_inline_time", "_request_bytes", "_throttle_time", "_versions", "errors", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self._versions = [0] * MAX_VERSIONS
        self.errors: ErrorCounts = defaultdict(int)
        """The error codes of responses, including NONE: `errors[code] += 1` for each partition or item."""
        self._inline_time = Histogram()
        self._request_bytes = Histogram(scale=1)
        self._delayed: _Waits | None = None  # created for the first request that waits
        self._throttle_time: Histogram | None = None  # created for the first request that is throttled

    def inline(self, version: int, seconds: float, request_bytes: int) -> None:
        """Record a request that took `seconds` and did not wait. `version` is a supported one.

        Histogram.record() is inlined twice here, which saves two calls for every request.
        """
        self._versions[version] += 1
        times = self._inline_time
        sizes = self._request_bytes
        times.sum += seconds
        sizes.sum += request_bytes
        micros = int(seconds * 1e6)
        times.buckets[DIRECT_BUCKETS[micros] if micros < DIRECT_VALUES else bucket_of(micros)] += 1
        sizes.buckets[DIRECT_BUCKETS[request_bytes] if request_bytes < DIRECT_VALUES else bucket_of(request_bytes)] += 1

    def delayed(self, version: int, local: float, remote: float, request_bytes: int) -> None:
        """Record a request that was handled, and whose response had to wait for something; both times in seconds.

        Histogram.record() is inlined here too: a rebalance responds to hundreds of requests at once.
        """
        self._versions[version] += 1
        sizes = self._request_bytes
        sizes.sum += request_bytes
        sizes.buckets[DIRECT_BUCKETS[request_bytes] if request_bytes < DIRECT_VALUES else bucket_of(request_bytes)] += 1
        if self._delayed is None:
            self._delayed = _Waits(Histogram(), Histogram(), Histogram())
        locals_, remotes, totals = self._delayed
        total = local + remote
        locals_.sum += local
        remotes.sum += remote
        totals.sum += total
        micros = int(local * 1e6)
        locals_.buckets[DIRECT_BUCKETS[micros] if micros < DIRECT_VALUES else bucket_of(micros)] += 1
        micros = int(remote * 1e6)
        remotes.buckets[DIRECT_BUCKETS[micros] if micros < DIRECT_VALUES else bucket_of(micros)] += 1
        micros = int(total * 1e6)
        totals.buckets[DIRECT_BUCKETS[micros] if micros < DIRECT_VALUES else bucket_of(micros)] += 1

    def throttled(self, seconds: float) -> None:
        """Record for how long the client is throttled because of this request."""
        if self._throttle_time is None:
            self._throttle_time = Histogram()
        self._throttle_time.record(seconds)

    def rotate(self) -> None:
        if self._throttle_time is not None:
            self._throttle_time.rotate()
        self._inline_time.rotate()
        self._request_bytes.rotate()
        for histogram in self._delayed or ():
            histogram.rotate()

    # -- read by the metrics page, in its own thread -----------------------------------------------------------------

    def versions(self) -> dict[int, int]:
        """The number of requests of each version."""
        return {version: count for version, count in enumerate(self._versions) if count}

    def error_counts(self) -> dict[ErrorCode, int]:
        return {ErrorCode(code): count for code, count in self.errors.copy().items()}

    def request_bytes(self) -> Distribution:
        return self._request_bytes.distribution()

    def times(self) -> dict[str, Distribution]:
        """The distribution of each of REQUEST_TIMES over all requests."""
        waits = self._delayed or _Waits(Histogram(), Histogram(), Histogram())
        local, remote, total = (histogram.distribution() for histogram in waits)
        inline = self._inline_time.distribution()
        total += inline  # for all requests; those that arrive during this are left out
        recorded = {LOCAL_TIME: local + inline, REMOTE_TIME: remote, TOTAL_TIME: total}
        if self._throttle_time is not None:
            recorded[THROTTLE_TIME] = self._throttle_time.distribution()
        return {name: _with_zeros(recorded.get(name, _NO_TIMES), total) for name in REQUEST_TIMES}


def _with_zeros(recorded: Distribution, total: Distribution) -> Distribution:
    return recorded.with_zeros(
        count=max(total.count - recorded.count, 0), window_count=max(total.window_count - recorded.window_count, 0)
    )


@dataclass(frozen=True, slots=True)
class RequestReading:
    """One API's numbers as the metrics page shows them, read once for all of its families."""

    name: str
    versions: dict[int, int]
    errors: dict[ErrorCode, int]
    request_bytes: Distribution
    times: dict[str, Distribution]

    @classmethod
    def of(cls, metrics: RequestMetrics) -> "RequestReading":
        return cls(metrics.name, metrics.versions(), metrics.error_counts(), metrics.request_bytes(), metrics.times())

    def __add__(self, other: "RequestReading") -> "RequestReading":
        return RequestReading(
            self.name,
            _sum(self.versions, other.versions),
            _sum(self.errors, other.errors),
            self.request_bytes + other.request_bytes,
            {time: self.times[time] + other.times[time] for time in REQUEST_TIMES},
        )


class RequestMetricsByApi:
    """The RequestMetrics of all APIs that were requested so far, by Kafka's names."""

    def __init__(self) -> None:
        self._by_name: dict[str, RequestMetrics] = {}

    def of(self, name: str) -> RequestMetrics:
        """The metrics of one API, created on first use. Keep a reference where it is used often."""
        metrics = self._by_name.get(name)
        if metrics is None:
            assert name != FETCH, "record fetches as FetchConsumer or FetchFollower: Fetch is their sum"
            metrics = self._by_name[name] = RequestMetrics(name)
        return metrics

    def rotate(self) -> None:
        for metrics in self._by_name.values():
            metrics.rotate()

    def read(self) -> list[RequestReading]:
        readings = [RequestReading.of(metrics) for metrics in list(self._by_name.values())]
        fetches = [reading for reading in readings if reading.name in (FETCH_CONSUMER, FETCH_FOLLOWER)]
        if not fetches:
            return readings
        others = [reading for reading in readings if reading not in fetches]
        every_fetch = replace(functools.reduce(operator.add, fetches), name=FETCH)
        return [*others, *(replace(fetch, errors={}) for fetch in fetches), every_fetch]


Key = TypeVar("Key")


def _sum(one: dict[Key, int], another: dict[Key, int]) -> dict[Key, int]:
    return {key: one.get(key, 0) + another.get(key, 0) for key in one.keys() | another.keys()}
