"""Whom a quota can be for, and which values it can have."""

import math

import pytest

from kaspar.console.problems import Unacceptable
from kaspar.console.quotas import EntityPart, QuotaRow, check_values, entity_of, select
from kaspar.quotas.entities import QuotaEntity

USER, DEFAULT_CLIENT, ADDRESS = (
    EntityPart("user", "alice"),
    EntityPart("client-id", None),
    EntityPart("ip", "192.0.2.7"),
)


def test_entities_are_users_clients_both_or_addresses() -> None:
    assert entity_of([USER]) == QuotaEntity("alice")
    assert entity_of([USER, DEFAULT_CLIENT]) == QuotaEntity("alice", "")
    assert entity_of([ADDRESS]) == QuotaEntity(None, None, "192.0.2.7")


@pytest.mark.parametrize(
    "parts", [[], [USER, USER], [USER, ADDRESS], [EntityPart("broker", "1")], [EntityPart("user", "")]]
)
def test_other_entities_are_unacceptable(parts: list[EntityPart]) -> None:
    with pytest.raises(Unacceptable):
        entity_of(parts)


def test_addresses_have_only_their_own_quota() -> None:
    check_values(QuotaEntity(None, None, "192.0.2.7"), {"connection_creation_rate": 5.0})
    check_values(QuotaEntity("alice"), {"producer_byte_rate": 1024.0, "request_percentage": None})
    with pytest.raises(Unacceptable, match="is not a quota of IP addresses"):
        check_values(QuotaEntity(None, None, "192.0.2.7"), {"producer_byte_rate": 5.0})
    with pytest.raises(Unacceptable, match="is not a quota of clients"):
        check_values(QuotaEntity("alice"), {"connection_creation_rate": 5.0})


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_a_quota_is_a_number_above_zero(value: float) -> None:
    with pytest.raises(Unacceptable, match="above 0"):
        check_values(QuotaEntity("alice"), {"producer_byte_rate": value})


def test_a_search_finds_names_and_defaults() -> None:
    rows = [QuotaRow((USER, DEFAULT_CLIENT), {}), QuotaRow((ADDRESS,), {}), QuotaRow((EntityPart("user", "bob"),), {})]
    assert select(rows, "ALICE", 0, 10).rows == (rows[0],)
    assert select(rows, "default", 0, 10).rows == (rows[0],)
    assert select(rows, "", 1, 1).rows == (rows[1],)
    assert select(rows, "", 1, 1).matching == 3
