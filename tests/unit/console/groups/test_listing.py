"""The list of groups: what is found, in which order, and how much of it."""

from dataclasses import replace

import pytest

from kaspar.client.admin.groups import GroupListing, GroupType
from kaspar.console.groups.listing import GroupQuery, SortKey, select
from kaspar.monitor.views import GroupLag, Status

LISTED = [
    GroupListing("Billing", "consumer", "Stable", GroupType.CLASSIC),
    GroupListing("audit", "", "Empty", GroupType.CLASSIC),
    GroupListing("billing-2", "consumer", "Empty", GroupType.CONSUMER),
    GroupListing("queue", "share", "Stable", GroupType.SHARE),
]


def lag(group: str, status: Status, total: int, seconds: float | None) -> GroupLag:
    return GroupLag(group, status, (), total, seconds, None, 1.0)


LAGS = {
    "Billing": lag("Billing", Status.OK, 5, 0.5),
    "audit": lag("audit", Status.ERR, 70, None),
    "billing-2": lag("billing-2", Status.WARN, 30, 9.0),
}


def names(query: GroupQuery) -> list[str]:
    return [row.group_id for row in select(LISTED, LAGS, query).rows]


def test_a_search_finds_parts_of_names_in_any_case() -> None:
    assert names(GroupQuery(search="BILL")) == ["Billing", "billing-2"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (GroupQuery(state="Empty"), ["audit", "billing-2"]),
        (GroupQuery(type="Share"), ["queue"]),
        (GroupQuery(status="ERR"), ["audit"]),
        (GroupQuery(search="b", state="Stable"), ["Billing"]),
    ],
)
def test_filters_are_combined(query: GroupQuery, found: list[str]) -> None:
    assert names(query) == found


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        (SortKey.GROUP, ["queue", "billing-2", "audit", "Billing"]),
        (SortKey.LAG, ["audit", "billing-2", "Billing", "queue"]),
        (SortKey.LAG_SECONDS, ["billing-2", "Billing", "audit", "queue"]),
        (SortKey.STATUS, ["audit", "billing-2", "Billing", "queue"]),
    ],
)
def test_the_largest_come_first_and_the_unknown_last(sort: SortKey, order: list[str]) -> None:
    assert names(GroupQuery(sort=sort, descending=True)) == order


def test_a_page_has_a_part_and_counts_all() -> None:
    page = select(LISTED, LAGS, GroupQuery(search="i", offset=1, limit=1))
    assert [row.group_id for row in page.rows] == ["audit"]
    assert (page.matching, page.total) == (3, 4)
    assert page.states == {"Stable": 2, "Empty": 2}
    assert page.types == {"Classic": 2, "Consumer": 1, "Share": 1}
    assert page.statuses == {"OK": 1, "ERR": 1, "WARN": 1}


def test_a_group_that_the_monitor_has_not_seen_has_no_lag() -> None:
    (row,) = select(LISTED, {}, GroupQuery(search="audit")).rows
    assert (row.total_lag, row.max_lag_seconds, row.status) == (None, None, None)
    (row,) = select(LISTED, {"audit": replace(LAGS["audit"], total_lag=1)}, GroupQuery(search="audit")).rows
    assert row.total_lag == 1
