"""Where the time of requests goes, for each API: Kafka's RequestMetrics.

Nearly every request is answered in the same breath it arrives in: it waits in no queue, for nobody and for no
throttle, and its local time is its total time. Such a request is told with `inline()`, which writes one duration and
one size. Every other request is told with `delayed()`, which writes those times that are not zero, and the total. The
zeros of both are put in when the metrics page is read.

Kafka counts each fetch twice, as Fetch and as FetchConsumer or FetchFollower. Here the broker tells the second, and
the first is their sum, made when it is read.
"""

import functools
import operator
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from kaspar.base.errors import ErrorCode
from kaspar.base.metrics import DIRECT_BUCKETS, DIRECT_VALUES, Distribution, Histogram, bucket_of

MAX_VERSIONS: Final = 64  # no API of Kafka is past version 18
FETCH: Final = "Fetch"
FETCH_CONSUMER: Final = "FetchConsumer"
FETCH_FOLLOWER: Final = "FetchFollower"

LOCAL_TIME: Final = "LocalTimeMs"
TOTAL_TIME: Final = "TotalTimeMs"
REQUEST_TIMES: Final = (
    "RequestQueueTimeMs",
    LOCAL_TIME,
    "RemoteTimeMs",
    "ThrottleTimeMs",
    "ResponseQueueTimeMs",
    "ResponseSendTimeMs",
    TOTAL_TIME,
)


class RequestMetrics:
    """One API's. Written by the event loop's thread."""

    __slots__ = ("_delayed", "_errors", "_inline_time", "_request_bytes", "_versions", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self._versions = [0] * MAX_VERSIONS
        self._errors: dict[ErrorCode, int] = {}
        self._inline_time = Histogram()
        self._request_bytes = Histogram(scale=1)
        self._delayed: dict[str, Histogram] = {}  # made for the first request that is not answered at once

    def inline(self, version: int, seconds: float, request_bytes: int) -> None:
        """A request that was worked on for `seconds` and answered at once. `version` is one the broker serves.

        Histogram.record() is written out twice here: two calls fewer, on the path of every request.
        """
        self._versions[version] += 1
        times = self._inline_time
        sizes = self._request_bytes
        times.sum += seconds
        sizes.sum += request_bytes
        micros = int(seconds * 1e6)
        times.buckets[DIRECT_BUCKETS[micros] if micros < DIRECT_VALUES else bucket_of(micros)] += 1
        sizes.buckets[DIRECT_BUCKETS[request_bytes] if request_bytes < DIRECT_VALUES else bucket_of(request_bytes)] += 1

    def delayed(
        self,
        version: int,
        queue: float,
        local: float,
        remote: float,
        throttle: float,
        response_queue: float,
        send: float,
        request_bytes: int,
    ) -> None:
        """A request whose answer had to wait for something; all times in seconds, their sum is the total.

        Histogram.record() is written out here too: a rebalance answers hundreds of them at once.
        """
        self._versions[version] += 1
        sizes = self._request_bytes
        sizes.sum += request_bytes
        sizes.buckets[DIRECT_BUCKETS[request_bytes] if request_bytes < DIRECT_VALUES else bucket_of(request_bytes)] += 1
        times = self._delayed
        if not times:
            # Whole at once, because a reader in another thread may be looking.
            times = self._delayed = {name: Histogram() for name in REQUEST_TIMES}
        total = queue + local + remote + throttle + response_queue + send
        in_order = (queue, local, remote, throttle, response_queue, send, total)
        for histogram, seconds in zip(times.values(), in_order, strict=True):
            if seconds or not total:
                micros = int(seconds * 1e6)
                histogram.buckets[DIRECT_BUCKETS[micros] if 0 <= micros < DIRECT_VALUES else bucket_of(micros)] += 1
                histogram.sum += seconds

    def error(self, code: ErrorCode, count: int = 1) -> None:
        """The response carries this error code, `count` times."""
        self._errors[code] = self._errors.get(code, 0) + count

    def rotate(self) -> None:
        self._inline_time.rotate()
        self._request_bytes.rotate()
        for histogram in self._delayed.values():
            histogram.rotate()

    # -- read by the metrics page, in its own thread -----------------------------------------------------------------

    def versions(self) -> dict[int, int]:
        """How many requests came in each version."""
        return {version: count for version, count in enumerate(self._versions) if count}

    def errors(self) -> dict[ErrorCode, int]:
        return self._errors.copy()

    def request_bytes(self) -> Distribution:
        return self._request_bytes.distribution()

    def times(self) -> dict[str, Distribution]:
        """For each of REQUEST_TIMES, how it is spread over all requests."""
        delayed = self._delayed or {name: Histogram() for name in REQUEST_TIMES}
        inline = self._inline_time.distribution()
        waited = {name: histogram.distribution() for name, histogram in delayed.items()}
        both = inline + waited[TOTAL_TIME]
        return {name: self._with_zeros(name, inline, waited[name], both) for name in REQUEST_TIMES}

    @staticmethod
    def _with_zeros(name: str, inline: Distribution, waited: Distribution, both: Distribution) -> Distribution:
        """`both` are the total times of all requests: each has one. Those that come while this is read are left out."""
        told = inline + waited if name in (LOCAL_TIME, TOTAL_TIME) else waited
        return told.with_zeros(
            count=max(both.count - told.count, 0), window_count=max(both.window_count - told.window_count, 0)
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
        return cls(metrics.name, metrics.versions(), metrics.errors(), metrics.request_bytes(), metrics.times())

    def __add__(self, other: "RequestReading") -> "RequestReading":
        return RequestReading(
            self.name,
            _sum(self.versions, other.versions),
            _sum(self.errors, other.errors),
            self.request_bytes + other.request_bytes,
            {time: self.times[time] + other.times[time] for time in REQUEST_TIMES},
        )


class RequestMetricsByApi:
    """The RequestMetrics of every API that has been asked for, by Kafka's names."""

    def __init__(self) -> None:
        self._by_name: dict[str, RequestMetrics] = {}

    def of(self, name: str) -> RequestMetrics:
        """Made on first use; hold on to it where it is used often."""
        metrics = self._by_name.get(name)
        if metrics is None:
            assert name != FETCH, "tell fetches as FetchConsumer or FetchFollower: Fetch is their sum"
            metrics = self._by_name[name] = RequestMetrics(name)
        return metrics

    def rotate(self) -> None:
        for metrics in self._by_name.values():
            metrics.rotate()

    def read(self) -> list[RequestReading]:
        readings = [RequestReading.of(metrics) for metrics in list(self._by_name.values())]
        fetches = [reading for reading in readings if reading.name in (FETCH_CONSUMER, FETCH_FOLLOWER)]
        if fetches:
            readings.append(replace(functools.reduce(operator.add, fetches), name=FETCH))
        return readings


Key = TypeVar("Key")


def _sum(one: dict[Key, int], another: dict[Key, int]) -> dict[Key, int]:
    return {key: one.get(key, 0) + another.get(key, 0) for key in one.keys() | another.keys()}
