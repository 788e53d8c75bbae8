import pytest

from kaspar.registry.names import (
    context_of,
    is_valid_subject,
    normalized,
    normalized_context,
    qualified,
    within,
)


@pytest.mark.parametrize(
    ("subject", "context", "name"),
    [
        ("orders", ".", "orders"),
        (":.eu:orders", ".eu", "orders"),
        (":.eu:a:b", ".eu", "a:b"),
        (":.eu:", ".eu", ""),
        (":.eu", ".eu", ""),
        (":.:orders", ".", "orders"),
        (":*:orders", "*", "orders"),
        (":orders", ".", ":orders"),
        ("", ".", ""),
    ],
)
def test_subject_is_split_into_context_and_name(subject: str, context: str, name: str) -> None:
    assert qualified(subject) == (context, name)
    assert context_of(subject) == context


@pytest.mark.parametrize(
    ("subject", "name"),
    [("orders", "orders"), (":.:orders", "orders"), (":.eu:orders", ":.eu:orders"), (":.eu", ":.eu:")],
)
def test_subject_has_one_normalized_name(subject: str, name: str) -> None:
    assert normalized(subject) == name


@pytest.mark.parametrize(
    ("parent", "subject", "found"),
    [
        ("orders", "money", "money"),
        (":.eu:orders", "money", ":.eu:money"),
        (":.eu:orders", ":.us:money", ":.us:money"),
        ("orders", ":.us:money", ":.us:money"),
    ],
)
def test_unqualified_reference_is_in_the_context_of_its_parent(parent: str, subject: str, found: str) -> None:
    assert within(parent, subject) == found


@pytest.mark.parametrize(
    ("context", "prefix"), [("eu", ":.eu:"), (".eu", ":.eu:"), (":.eu:", ":.eu:"), (".", ""), (":.:", "")]
)
def test_context_may_be_written_in_several_ways(context: str, prefix: str) -> None:
    assert normalized_context(context) == prefix


def test_context_has_no_colon_inside() -> None:
    with pytest.raises(ValueError, match="colon"):
        normalized_context("a:b")


@pytest.mark.parametrize("subject", ["a\nb", "\x00", "a\x7f", "\x9f", "__GLOBAL", ":.eu:__GLOBAL"])
def test_invalid_subjects(subject: str) -> None:
    assert not is_valid_subject(subject)


@pytest.mark.parametrize("subject", ["orders-value", "ü", "a/b", "a b", "", ":.eu:x"])
def test_valid_subjects(subject: str) -> None:
    assert is_valid_subject(subject)
