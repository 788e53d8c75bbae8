"""What consumer instances can be created with, and the patterns that they subscribe to."""

import pytest

from kaspar.rest.consuming.options import instance_options
from kaspar.rest.consuming.patterns import TopicPattern
from kaspar.rest.errors import RestError
from kaspar.rest.formats import EmbeddedFormat
from kaspar.rest.settings import RestSettings

SETTINGS = RestSettings.of({"consumer.request.timeout.ms": "7", "fetch.min.bytes": "8"})


def test_what_a_request_leaves_out_is_as_the_settings_say() -> None:
    options = instance_options(SETTINGS, group="g")
    assert options.format is EmbeddedFormat.BINARY
    assert (options.request_timeout_ms, options.fetch_min_bytes) == (7, 8)
    assert options.properties == {"group.id": "g"}


def test_what_a_request_says_counts() -> None:
    options = instance_options(
        SETTINGS,
        group="g",
        embedded="AVRO",
        auto_offset_reset="earliest",
        auto_commit_enable=False,
        fetch_min_bytes=-1,
        request_timeout_ms=0,
    )
    assert options.format is EmbeddedFormat.AVRO
    assert (options.request_timeout_ms, options.fetch_min_bytes) == (0, -1)
    assert options.properties == {"group.id": "g", "auto.offset.reset": "earliest", "enable.auto.commit": "false"}


def test_a_pattern_matches_whole_names() -> None:
    names = ["orders", "orders-eu", "old-orders"]
    assert TopicPattern("orders").matching(names) == ["orders"]
    assert TopicPattern("orders.*").matching(names) == ["orders", "orders-eu"]
    assert TopicPattern("a|orders").matching(names) == ["orders"]


def test_a_pattern_takes_time_in_proportion_to_the_names() -> None:
    assert TopicPattern("(a+)+b").matching(["a" * 249] * 1000) == []


@pytest.mark.parametrize("pattern", ["(", "[a", r"(a)\1", "(?=a)", "a{1,9999}"])
def test_patterns_that_re2_does_not_have_are_refused(pattern: str) -> None:
    with pytest.raises(RestError) as refused:
        TopicPattern(pattern)
    assert refused.value.kind.status == 422
