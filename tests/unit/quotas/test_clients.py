"""How much clients use, and how long they are throttled. The numbers are those that Kafka's classes give."""

import pytest

from kaspar.quotas import clients
from kaspar.quotas.clients import client_quotas, mutation_quotas
from kaspar.quotas.entities import CONTROLLER_MUTATION_RATE, DEFAULT, PRODUCER_BYTE_RATE, QuotaEntity, QuotasByEntity
from kaspar.quotas.rates import Rate, TokenBucket, Windows

NOW = 1_000_000


def produce_quotas(**limits: float) -> QuotasByEntity:
    return {QuotaEntity(None, name): {PRODUCER_BYTE_RATE: limit} for name, limit in limits.items()}


def test_missing_windows_count_as_empty() -> None:
    rate = Rate(Windows(11, 1000), NOW)
    rate.record(5000, NOW)
    assert rate.per_second(NOW) == 500  # over the ten windows before this one
    assert rate.per_second(NOW + 500) == pytest.approx(5000 / 10.5)
    assert rate.per_second(NOW + 11_000) == 0


def test_a_client_over_its_quota_waits_until_its_rate_is_at_the_quota() -> None:
    rate = Rate(Windows(11, 1000), NOW)
    rate.record(20_000, NOW)
    assert rate.throttle_time_ms(2_000, NOW) == 0
    assert rate.throttle_time_ms(1_000, NOW) == 10_000
    assert rate.throttle_time_ms(1_500, NOW) == 3_333


def test_what_was_allowed_after_a_silence_is_allowed_at_any_time() -> None:
    rate = Rate(Windows(11, 1000), NOW)
    allowed = rate.always_allowed(1_000)
    for number in range(40):
        now_ms = NOW + 270 * number
        rate.record(100, now_ms)
        if rate.counted <= allowed:
            assert rate.throttle_time_ms(1_000, now_ms) == 0


def test_a_token_bucket_starts_full_and_may_be_overdrawn_once() -> None:
    bucket = TokenBucket(Windows(100, 1000), 5, NOW)
    bucket.take(560, 5, NOW)  # the example of Kafka's TokenBucket
    assert bucket.throttle_time_ms(5, NOW) == 12_000
    assert bucket.throttle_time_ms(5, NOW + 11_000) == 1_000
    assert bucket.throttle_time_ms(5, NOW + 12_000) == 0
    assert bucket.tokens(5, NOW + 1_000_000) == 500


def test_clients_that_share_a_quota_are_counted_together() -> None:
    quotas = client_quotas(PRODUCER_BYTE_RATE)
    quotas.update({QuotaEntity("alice"): {PRODUCER_BYTE_RATE: 100.0}}, Windows())
    assert quotas.usage("alice", "one", NOW) is quotas.usage("alice", "two", NOW)
    assert quotas.usage("alice", "one", NOW) is not quotas.usage("bob", "one", NOW)
    quotas.update(produce_quotas(**{DEFAULT: 100.0}), Windows())
    assert quotas.usage("alice", "one", NOW) is quotas.usage("bob", "one", NOW)
    assert quotas.usage("alice", "one", NOW) is not quotas.usage("alice", "two", NOW)


def test_a_changed_quota_counts_for_what_was_used_before() -> None:
    quotas = client_quotas(PRODUCER_BYTE_RATE)
    quotas.update(produce_quotas(app=1_000.0), Windows())
    assert quotas.usage("u", "app", NOW).use(10_000, NOW) == 0
    quotas.update(produce_quotas(app=500.0), Windows())
    assert quotas.usage("u", "app", NOW).use(0, NOW) == 10_000
    quotas.update({}, Windows())
    assert not quotas.enabled


def test_an_infinite_quota_is_none() -> None:
    quotas = mutation_quotas(CONTROLLER_MUTATION_RATE)
    quotas.update({QuotaEntity("u"): {CONTROLLER_MUTATION_RATE: float("inf")}}, Windows())
    assert quotas.usage("u", "app", NOW).take(10**9, NOW, strict=True) == 0


def test_a_strict_mutation_quota_takes_nothing_once_it_is_exhausted() -> None:
    quotas = mutation_quotas(CONTROLLER_MUTATION_RATE)
    quotas.update({QuotaEntity("u"): {CONTROLLER_MUTATION_RATE: 1.0}}, Windows())
    usage = quotas.usage("u", None, NOW)
    assert usage.take(20, NOW, strict=True) == 0
    assert usage.take(1, NOW, strict=True) == 9_000
    assert usage.take(1, NOW + 9_000, strict=True) == 0
    assert usage.take(1, NOW + 9_000, strict=False) == 2_000


def test_the_silent_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "MAX_CLIENTS", 10)
    quotas = client_quotas(PRODUCER_BYTE_RATE)
    quotas.update(produce_quotas(**{DEFAULT: 100.0}), Windows())
    for number in range(100):
        quotas.usage("u", f"client-{number}", NOW + number).use(10, NOW + number)
    readings = list(quotas.readings(NOW + 100))
    assert len(readings) <= 11
    assert readings[-1].client_id == "client-99"
    quotas.usage("u", "late", NOW + clients.EXPIRY_MS + 1000).use(1, NOW + clients.EXPIRY_MS + 1000)
    assert [reading.client_id for reading in quotas.readings(NOW + clients.EXPIRY_MS + 1000)] == ["late"]


def test_the_average_throttle_time_is_that_of_the_last_minute() -> None:
    quotas = client_quotas(PRODUCER_BYTE_RATE)
    quotas.update(produce_quotas(app=1.0), Windows())
    usage = quotas.usage("u", "app", NOW)
    usage.throttled(100, NOW)
    usage.throttled(300, NOW)
    assert usage.reading(NOW).throttle_time_ms == pytest.approx(200)
    assert usage.reading(NOW + 100_000).throttle_time_ms == 0


def test_small_amounts_count_as_if_each_were_recorded() -> None:
    quotas = client_quotas(PRODUCER_BYTE_RATE)
    quotas.update(produce_quotas(app=1_000.0), Windows())
    usage, reference = quotas.usage("u", "app", NOW), Rate(Windows(), NOW)
    throttle_times_ms = []
    for now_ms in range(NOW, NOW + 15_000, 3):
        reference.record(4, now_ms)  # a third too much: the limit is reached after a while
        throttle_times_ms.append(usage.use(4, now_ms))
        assert throttle_times_ms[-1] == reference.throttle_time_ms(1_000, now_ms)
    assert throttle_times_ms[0] == 0 < throttle_times_ms[-1]


def test_the_metrics_show_what_was_used_a_moment_ago() -> None:
    quotas = client_quotas(PRODUCER_BYTE_RATE)
    quotas.update(produce_quotas(app=1_000_000.0), Windows())
    usage = quotas.usage("u", "app", NOW)
    for _ in range(10):
        usage.use(1_000, NOW + 1)
    assert usage.reading(NOW + 1).rate == pytest.approx(10_000 / 10.001, rel=0.001)
    assert usage.reading(NOW + 2_000).rate == pytest.approx(10_000 / 10, rel=0.001)
    assert usage.reading(NOW + 20_000).rate == 0
    usage.use(1_000, NOW + 20_000)
    assert usage.reading(NOW + 20_000).rate == pytest.approx(100)
