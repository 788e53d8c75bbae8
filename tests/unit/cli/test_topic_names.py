"""Topics by names and patterns."""

import pytest

from kaspar.cli.failures import NotFound, WrongUsage
from kaspar.cli.topic_names import expression_of, is_pattern, matching, unknown_topic

EXISTING = ["__consumer_offsets", "orders", "orders.eu", "orders-us", "payments"]


def test_names_and_patterns_are_told_apart() -> None:
    assert [is_pattern(word) for word in ("orders", "orders.eu", "orders*", "order?", "[op]*", "^o")] == [
        False, False, True, True, True, True,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["orders"], ["orders"]),
        (["orders*"], ["orders", "orders-us", "orders.eu"]),
        (["orders.*"], ["orders.eu"]),
        (["order?"], ["orders"]),
        (["[op]*s"], ["orders", "orders-us", "payments"]),
        (["^orders.eu$"], ["orders.eu"]),
        (["payments", "*s"], ["payments", "orders", "orders-us"]),
        (["__*"], ["__consumer_offsets"]),
        (["*"], ["orders", "orders-us", "orders.eu", "payments"]),
    ],
)
def test_words_stand_for_topics(words: list[str], expected: list[str]) -> None:
    assert matching(words, EXISTING) == expected


def test_pattern_without_topics_and_pattern_that_is_none() -> None:
    with pytest.raises(NotFound, match=r"no topic matches 'x\*'"):
        matching(["x*"], EXISTING)
    with pytest.raises(WrongUsage, match="is not a pattern"):
        expression_of("^(")


def test_near_names_of_an_unknown_topic() -> None:
    assert str(unknown_topic("ordes", EXISTING)).endswith("did you mean 'orders', 'orders.eu' or 'orders-us'?")
    assert "'kaspar topic create zzz' creates it" in str(unknown_topic("zzz", EXISTING))
