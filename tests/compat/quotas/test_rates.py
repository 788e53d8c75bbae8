"""Our rates and token buckets beside Kafka's own classes, step by step."""

import random
from collections.abc import Iterator

import pytest

from kaspar.quotas.rates import Rate, TokenBucket, Windows
from tests.peers.kafka_tools import KafkaTools
from tests.peers.missing import unless_missing

LIMIT = 500
FIRST_MS = 1_700_000_000_000
PAUSES_MS = (0, 1, 90, 400, 1_000, 2_500, 40_000)


@pytest.fixture(scope="module")
def tools() -> Iterator[KafkaTools]:
    with unless_missing(KafkaTools) as running:
        yield running


@pytest.mark.parametrize(("samples", "size_ms"), [(11, 1000), (2, 1000), (1, 500), (3, 30_000)])
def test_rates_and_tokens_are_those_of_kafka(tools: KafkaTools, samples: int, size_ms: int) -> None:
    rng = random.Random(samples)
    now_ms, steps = FIRST_MS, []
    for _ in range(400):
        now_ms += rng.choices(PAUSES_MS, weights=(4, 4, 8, 6, 3, 1, 0.2))[0]
        steps.append((now_ms, rng.choice((0, 1, 100, 3_000, -50))))
    done = tools.run(
        "QuotaRates", str(samples), str(size_ms), str(LIMIT), ",".join(f"{at}:{much}" for at, much in steps)
    )
    assert done.code == 0, done.errors
    lines = done.output.splitlines()
    assert len(lines) == len(steps)
    rate = Rate(Windows(samples, size_ms), steps[0][0])
    bucket = TokenBucket(Windows(samples, size_ms), LIMIT, steps[0][0])
    for (at, much), line in zip(steps, lines, strict=True):
        rate.record(much, at)
        bucket.take(much, LIMIT, at)
        of_kafka = [float(number) for number in line.split()]
        assert [rate.per_second(at), rate.elapsed_ms(at), bucket.tokens(LIMIT, at)] == pytest.approx(of_kafka)
        per_second, elapsed_ms, _ = of_kafka
        expected = (per_second - LIMIT) / LIMIT * elapsed_ms if per_second > LIMIT else 0
        assert rate.throttle_time_ms(LIMIT, at) == pytest.approx(expected, abs=0.51)
