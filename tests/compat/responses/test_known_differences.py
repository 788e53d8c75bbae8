"""The table of known differences is sound, and the page written from it is current. Needs no broker."""

import pytest

from tests.compat.responses.compare import Difference, differences
from tests.compat.responses.differences import KNOWN, Known, judge
from tests.compat.responses.report import PAGE, render
from tests.compat.responses.scenarios import SCENARIOS
from tests.compat.responses.test_cluster import SCENARIOS as OF_A_CLUSTER

ALL = (*SCENARIOS, *OF_A_CLUSTER)
BY_SLUG = {scenario.slug: scenario for scenario in ALL}


def test_scenarios_have_names_of_their_own() -> None:
    assert len(BY_SLUG) == len(ALL)


@pytest.mark.parametrize("entry", KNOWN, ids=lambda entry: entry.what)
def test_known_difference_concerns_scenarios_that_exist(entry: Known) -> None:
    for slug in entry.scenarios:
        versions = BY_SLUG[slug].tested_versions()
        assert entry.versions is None or set(entry.versions) <= set(versions)


def test_the_page_of_differences_is_current() -> None:
    assert PAGE.read_text() == render(), "run: python -m tests.compat.responses.report"


def test_every_field_that_differs_is_named() -> None:
    kafka = {"topics": {"t": {"error_code": "NONE", "partitions": [1, 2]}}, "same": [{"a": 1}], "flag": True}
    subject = {
        "topics": {"t": {"error_code": "INVALID", "partitions": [1, 3]}},
        "same": [{"a": 1}],
        "flag": 1,
        "more": 0,
    }
    assert [found.path for found in differences(kafka, subject)] == [
        "topics / t / error_code",
        "topics / t / partitions / 1",
        "flag",
        "more",
    ]


def test_a_difference_is_excused_only_where_it_is_known() -> None:
    scenario = SCENARIOS[0]
    known = Known("What.", "Why.", [scenario.slug], ["step 1: * / error_code"], versions=[1])
    expected, other = Difference("step 1: Fetch / error_code", "NONE", "X"), Difference("step 1: Fetch / offset", 1, 2)
    assert judge([expected], scenario, 1, [known]).unexpected == []
    assert judge([expected, other], scenario, 1, [known]).unexpected == [other]
    assert judge([expected], scenario, 2, [known]).unexpected == [expected]


def test_an_excuse_that_excuses_nothing_is_stale() -> None:
    scenario = SCENARIOS[0]
    known = Known("What.", "Why.", [scenario.slug], ["step 1: *", "step 2: *"])
    assert judge([Difference("step 1: Fetch", 1, 2)], scenario, 0, [known]).stale == ["What. (step 2: *)"]
