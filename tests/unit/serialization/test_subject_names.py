"""Under which subject a schema is registered."""

import pytest

from kaspar.base.errors import InvalidSetting
from kaspar.serialization.errors import SerializationError
from kaspar.serialization.subject_names import strategy


@pytest.mark.parametrize("package", ["", "io.confluent.kafka.serializers.subject."])
@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("TopicNameStrategy", "orders-key", "orders-value"),
        ("RecordNameStrategy", "shop.Order", "shop.Order"),
        ("TopicRecordNameStrategy", "orders-shop.Order", "orders-shop.Order"),
    ],
)
def test_subject_of_each_strategy(package: str, name: str, key: str, value: str) -> None:
    found = strategy(package + name)
    assert (found("orders", True, "shop.Order"), found("orders", False, "shop.Order")) == (key, value)


@pytest.mark.parametrize("name", ["RecordNameStrategy", "TopicRecordNameStrategy"])
def test_schema_without_a_name_has_no_subject_by_it(name: str) -> None:
    with pytest.raises(SerializationError, match="has no name"):
        strategy(name)("orders", False, None)


def test_unknown_strategy() -> None:
    with pytest.raises(InvalidSetting, match=r"com\.example\.Mine: TopicNameStrategy"):
        strategy("com.example.Mine")
