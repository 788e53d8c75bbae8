"""Rates as Kafka's quotas measure them: `Rate` over sampled windows, and the `TokenBucket` of controller mutations."""

import math
from typing import Final, NamedTuple

MAX_THROTTLE_MS: Final = (1 << 31) - 1


class Windows(NamedTuple):
    """`quota.window.num` and `quota.window.size.seconds`, or those of another kind of quota."""

    samples: int = 11
    size_ms: int = 1000

    @property
    def span_s(self) -> float:
        """The duration of all samples together."""
        return self.samples * self.size_ms / 1000


class _Sample:
    __slots__ = ("last_ms", "start_ms", "value")

    def __init__(self, now_ms: int) -> None:
        self.reset(now_ms)

    def reset(self, now_ms: int) -> None:
        self.start_ms = self.last_ms = now_ms
        self.value = 0.0


class Rate:
    """An amount per second over the last samples: Kafka's Rate over SampledStat.

    A sample that began before the span is kept whole if anything was recorded in it within the span. For that there is
    one sample more than configured. If fewer samples have passed than configured, the missing ones count as empty.
    Kafka goes through all samples each time to compute their sum and the oldest of them; here both are kept up to date.
    """

    __slots__ = ("_due_ms", "_oldest_ms", "_position", "_samples", "_windows", "counted", "current", "size_ms")

    def __init__(self, windows: Windows, now_ms: int) -> None:
        self._windows = windows
        self.size_ms = windows.size_ms
        self.current = _Sample(now_ms)
        self._position = 0
        self._samples = [self.current]
        self.counted = 0.0
        """The sum of all samples, possibly including obsolete ones."""
        self._oldest_ms = now_ms
        self._due_ms = now_ms + windows.samples * windows.size_ms
        """No sample is obsolete before this time."""

    @property
    def last_ms(self) -> int:
        """The time of the last record."""
        return self.current.last_ms

    def record(self, amount: float, now_ms: int) -> None:
        sample = self.current
        if now_ms - sample.start_ms >= self.size_ms:
            sample = self.advance(now_ms)
        sample.value += amount
        sample.last_ms = now_ms
        self.counted += amount

    def always_allowed(self, limit: float) -> float:
        """While `counted` does not exceed this amount the rate stays within the limit at any time, because the rate is
        always computed over at least all samples but one.
        """
        return limit * (self._windows.samples - 1) * self.size_ms / 1000

    def advance(self, now_ms: int) -> _Sample:
        """Start the next sample, because the current one is full."""
        samples = self._samples
        self._position = (self._position + 1) % (self._windows.samples + 1)
        if self._position == len(samples):
            samples.append(_Sample(now_ms))
        else:
            samples[self._position].reset(now_ms)
        self.current = samples[self._position]
        self._sum_up()
        return self.current

    def _sum_up(self) -> None:
        self.counted = sum(sample.value for sample in self._samples)
        self._oldest_ms = min(sample.start_ms for sample in self._samples)
        self._due_ms = min(sample.last_ms for sample in self._samples) + self._windows.samples * self._windows.size_ms

    def elapsed_ms(self, now_ms: int) -> int:
        """The duration that the rate is computed over."""
        count, size_ms = self._windows
        if now_ms >= self._due_ms:
            for sample in self._samples:
                if now_ms - sample.last_ms >= count * size_ms:
                    sample.reset(now_ms)
            self._sum_up()
        return self._at_least_all_but_one(now_ms - self._oldest_ms)

    def _at_least_all_but_one(self, elapsed_ms: int) -> int:
        samples, size_ms = self._windows
        missing = samples - 1 - elapsed_ms // size_ms
        return max(elapsed_ms + missing * size_ms if missing > 0 else elapsed_ms, 1)

    def per_second(self, now_ms: int) -> float:
        elapsed_ms = self.elapsed_ms(now_ms)  # first, because it drops obsolete samples
        return self.counted * 1000 / elapsed_ms

    def observed(self, now_ms: int, unrecorded: float = 0.0, used_ms: int = 0) -> float:
        """The value of `per_second`, without side effects, so that the metrics page may call it from another thread.
        `unrecorded` is an additional amount, used at `used_ms`.
        """
        samples, size_ms = self._windows
        recent = [each for each in tuple(self._samples) if now_ms - each.last_ms < samples * size_ms]
        elapsed_ms = now_ms - min((each.start_ms for each in recent), default=now_ms)
        counted = sum(each.value for each in recent)
        if now_ms - used_ms < samples * size_ms:
            counted += unrecorded
        return counted * 1000 / self._at_least_all_but_one(elapsed_ms)

    def throttle_time_ms(self, limit: float, now_ms: int) -> int:
        """How long it takes, without further usage, until the rate falls to the limit: Kafka's QuotaUtils.throttleTime.
        0 if the rate is not above the limit.
        """
        elapsed_ms = self.elapsed_ms(now_ms)
        rate = self.counted * 1000 / elapsed_ms
        if rate <= limit:
            return 0
        return min(_rounded((rate - limit) / limit * elapsed_ms), MAX_THROTTLE_MS)


class TokenBucket:
    """A bucket refilled at the rate of the limit, up to one whole span's tokens: Kafka's TokenBucket (KIP-599). It is
    exhausted while the number of tokens is negative.
    """

    __slots__ = ("_tokens", "_updated_ms", "_windows")

    def __init__(self, windows: Windows, limit: float, now_ms: int) -> None:
        self._windows = windows
        self._tokens = windows.span_s * limit
        self._updated_ms = now_ms

    @property
    def last_ms(self) -> int:
        return self._updated_ms

    def take(self, amount: float, limit: float, now_ms: int) -> None:
        self._tokens = min(self.tokens(limit, now_ms) - amount, self._windows.span_s * limit)

    def tokens(self, limit: float, now_ms: int) -> float:
        refilled = self._tokens + limit * (now_ms - self._updated_ms) / 1000
        self._tokens = min(refilled, self._windows.span_s * limit)
        self._updated_ms = now_ms
        return self._tokens

    def observed(self, limit: float, now_ms: int) -> float:
        """The value of `tokens`, without side effects, like `Rate.observed`."""
        return min(self._tokens + limit * (now_ms - self._updated_ms) / 1000, self._windows.span_s * limit)

    def throttle_time_ms(self, limit: float, now_ms: int) -> int:
        tokens = self.tokens(limit, now_ms)
        return min(_rounded(-tokens / limit * 1000), MAX_THROTTLE_MS) if tokens < 0 else 0


def _rounded(number: float) -> int:
    """Round halves up, as Java's Math.round does."""
    return math.floor(number + 0.5)
