"""Which quota applies to a client, and who shares it."""

import pytest

from kaspar.quotas.entities import DEFAULT, Applied, QuotaEntity, applied_to

IN_ORDER = [
    QuotaEntity("alice", "app"),
    QuotaEntity("alice", DEFAULT),
    QuotaEntity("alice"),
    QuotaEntity(DEFAULT, "app"),
    QuotaEntity(DEFAULT, DEFAULT),
    QuotaEntity(DEFAULT),
    QuotaEntity(None, "app"),
    QuotaEntity(None, DEFAULT),
]
SHARED_BY = [
    ("alice", "app"),
    ("alice", "app"),
    ("alice", ""),
    ("alice", "app"),
    ("alice", "app"),
    ("alice", ""),
    ("", "app"),
    ("", "app"),
]


@pytest.mark.parametrize("level", range(len(IN_ORDER)))
def test_the_most_specific_of_eight_levels_counts(level: int) -> None:
    limits = {entity: float(number) for number, entity in enumerate(IN_ORDER) if number >= level}
    assert applied_to(limits, "alice", "app") == Applied(*SHARED_BY[level], float(level))


def test_quotas_of_others_do_not_count() -> None:
    limits = {QuotaEntity("bob"): 1.0, QuotaEntity("bob", "app"): 2.0, QuotaEntity(None, "other"): 3.0}
    assert applied_to(limits, "alice", "app").limit is None


def test_a_client_without_a_client_id_has_no_quota_for_one() -> None:
    limits = {QuotaEntity(None, DEFAULT): 1.0, QuotaEntity("alice", DEFAULT): 2.0}
    assert applied_to(limits, "alice", "").limit is None
    assert applied_to({**limits, QuotaEntity(DEFAULT): 3.0}, "alice", "") == Applied("alice", "", 3.0)


def test_an_entity_is_written_with_its_types() -> None:
    assert list(QuotaEntity("alice", DEFAULT).parts()) == [("client-id", None), ("user", "alice")]
    assert list(QuotaEntity(ip="::1").parts()) == [("ip", "::1")]
