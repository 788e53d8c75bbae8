"""Patterns of topics are written for Java: they match here what they match there, or are refused."""

import re

import pytest

from kaspar.spark.reading.java_patterns import python_pattern


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("clicks", ["clicks", "my-clicks-2"], ["Clicks"]),
        ("(?i)CLICKS$", ["clicks", "my-CLICKS"], ["clicks-2"]),
        (r"\Qeu.clicks\E-\d+", ["eu.clicks-1"], ["eu-clicks-1", "eu.clicks-x"]),
        (r"\Qa.b", ["a.b"], ["a-b"]),
        (r"^clicks\z", ["clicks"], ["clicks-2"]),
        ("^(?<region>eu|us)-clicks", ["eu-clicks"], ["cn-clicks"]),
        ("(?<=eu-)clicks", ["eu-clicks"], ["us-clicks"]),
        (r"eu\\.?clicks|x\\Q", [], ["eu.clicks"]),
        ("cl++icks", ["cllicks"], ["cicks"]),
    ],
)
def test_what_java_matches_is_matched(pattern: str, matching: list[str], others: list[str]) -> None:
    compiled = re.compile(python_pattern(pattern))
    assert [name for name in (*matching, *others) if compiled.search(name)] == matching


@pytest.mark.parametrize("pattern", ["clicks(", r"\p{Alpha}+", "[a-z&&[^c]]licks"])
def test_what_would_match_something_else_is_refused(pattern: str) -> None:
    with pytest.raises(re.error):
        python_pattern(pattern)
