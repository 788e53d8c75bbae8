"""Prometheus' text format, as other programs write it."""

import math

import pytest

from kaspar.base.exposition import labels
from kaspar.monitor.scraping.exposition import Sample, parse


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("up 1", Sample("up", {}, 1.0)),
        ("up{} 1", Sample("up", {}, 1.0)),
        ('a_total{topic="t",partition="0"} 4.5', Sample("a_total", {"topic": "t", "partition": "0"}, 4.5)),
        ('a{topic = "t" , } 1e3 1700000000000', Sample("a", {"topic": "t"}, 1000.0)),
        ('a{x="q\\"b\\\\n\\n}"} 2', Sample("a", {"x": 'q"b\\n\n}'}, 2.0)),
        ('a{x="with, comma",y="{"} 2', Sample("a", {"x": "with, comma", "y": "{"}, 2.0)),
        ("a:b -Inf", Sample("a:b", {}, -math.inf)),
        ("  a\t7  ", Sample("a", {}, 7.0)),
    ],
)
def test_a_sample(line: str, expected: Sample) -> None:
    assert list(parse(line)) == [expected]


def test_comments_and_what_cannot_be_read_are_left_out() -> None:
    page = """# HELP a Words.
# TYPE a counter
a 1

b
c{x="1} 2
d{x=1} 2
e one
9f 1
g 3
"""
    assert [(each.name, each.value) for each in parse(page)] == [("a", 1.0), ("g", 3.0)]


def test_not_a_number_is_a_value() -> None:
    (sample,) = parse("a NaN")
    assert math.isnan(sample.value)


@pytest.mark.parametrize(
    "value", ["plain", 'quo"te', "back\\slash", "new\nline", "\\n", "}, {", "ü ﷽", "a\u2028b\x0bc"]
)
def test_labels_that_kaspar_writes_are_read_as_they_were(value: str) -> None:
    (sample,) = parse(f"a{labels(x=value, y=1)} 1")
    assert sample.labels == {"x": value, "y": "1"}
