"""Rates, which keep sums up to date, against a model that goes through all samples each time, as Kafka's classes do."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from kaspar.quotas.rates import Rate, TokenBucket, Windows


@dataclass
class Sample:
    start_ms: int
    last_ms: int
    value: int = 0


class NaiveRate:
    """SampledStat, WindowedSum and Rate of Kafka 4.3, sentence by sentence."""

    def __init__(self, windows: Windows, now_ms: int) -> None:
        self.windows = windows
        self.samples = [Sample(now_ms, now_ms)]
        self.current = 0

    def record(self, amount: int, now_ms: int) -> None:
        if now_ms - self.samples[self.current].start_ms >= self.windows.size_ms:
            self.current = (self.current + 1) % (self.windows.samples + 1)
            fresh = Sample(now_ms, now_ms)
            if self.current >= len(self.samples):
                self.samples.append(fresh)
            else:
                self.samples[self.current] = fresh
        sample = self.samples[self.current]
        sample.value += amount
        sample.last_ms = now_ms

    def window_ms(self, now_ms: int) -> int:
        for number, sample in enumerate(self.samples):
            if now_ms - sample.last_ms >= self.windows.samples * self.windows.size_ms:
                self.samples[number] = Sample(now_ms, now_ms)
        elapsed = now_ms - min(sample.start_ms for sample in self.samples)
        full = elapsed // self.windows.size_ms
        wanted = self.windows.samples - 1
        if full < wanted:
            elapsed += (wanted - full) * self.windows.size_ms
        return max(elapsed, 1)

    def per_second(self, now_ms: int) -> float:
        window_ms = self.window_ms(now_ms)
        return sum(sample.value for sample in self.samples) * 1000 / window_ms


STEPS = st.lists(
    st.tuples(st.sampled_from(["record", "read"]), st.integers(0, 4000), st.integers(-50, 10_000)), max_size=60
)


@given(samples=st.integers(1, 12), size_ms=st.sampled_from([100, 1000, 3000]), steps=STEPS, limit=st.integers(1, 5000))
def test_a_rate_is_that_of_the_model(samples: int, size_ms: int, steps: list[tuple[str, int, int]], limit: int) -> None:
    windows, now_ms = Windows(samples, size_ms), 5_000
    rate, model = Rate(windows, now_ms), NaiveRate(windows, now_ms)
    allowed = rate.always_allowed(limit)
    for step, later_ms, amount in steps:
        now_ms += later_ms
        counted = 0.0
        if step == "record":
            rate.record(amount, now_ms)
            counted = rate.counted
            model.record(amount, now_ms)
        if step == "read" or counted <= allowed:
            wanted = model.per_second(now_ms)
            assert rate.per_second(now_ms) == wanted
            excess = (wanted - limit) / limit * model.window_ms(now_ms)
            assert rate.throttle_time_ms(limit, now_ms) == (int(excess + 0.5) if wanted > limit else 0)
            if step == "record" and samples > 1:
                assert wanted <= limit, "what is always allowed is not throttled"


@given(limit=st.integers(1, 100), steps=st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 500)), max_size=40))
def test_a_token_bucket_never_has_more_than_a_span_of_tokens(limit: int, steps: list[tuple[int, int]]) -> None:
    windows, now_ms = Windows(11, 1000), 0
    bucket, tokens = TokenBucket(windows, limit, now_ms), 11.0 * limit
    for later_ms, amount in steps:
        now_ms += later_ms
        tokens = min(tokens + limit * later_ms / 1000, 11 * limit)
        assert abs(bucket.tokens(limit, now_ms) - tokens) < 1e-6
        assert (bucket.throttle_time_ms(limit, now_ms) == 0) == (tokens > -0.0005 * limit - 1e-9)
        bucket.take(amount, limit, now_ms)
        tokens -= amount
