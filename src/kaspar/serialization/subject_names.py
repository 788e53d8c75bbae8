"""The subject under which the schema of a topic's keys or values is registered: Confluent's three strategies.

A strategy is named by its Java class, in full or without the package, as in `value.subject.name.strategy`.
"""

from collections.abc import Callable, Mapping
from typing import Final

from kaspar.base.errors import InvalidSetting
from kaspar.serialization.errors import SerializationError

SubjectNameStrategy = Callable[[str, bool, str | None], str]
"""Takes the topic, whether it is for keys, and the full name of the record or message. Raises SerializationError."""

DEFAULT: Final = "TopicNameStrategy"
_PACKAGES: Final = ("io.confluent.kafka.serializers.subject.",)


def topic_name(topic: str, is_key: bool, record_name: str | None) -> str:
    del record_name
    return f"{topic}-{'key' if is_key else 'value'}"


def record_name(topic: str, is_key: bool, record_name: str | None) -> str:
    del topic
    return _required(record_name, is_key)


def topic_record_name(topic: str, is_key: bool, record_name: str | None) -> str:
    return f"{topic}-{_required(record_name, is_key)}"


_STRATEGIES: Final[Mapping[str, SubjectNameStrategy]] = {
    "TopicNameStrategy": topic_name,
    "RecordNameStrategy": record_name,
    "TopicRecordNameStrategy": topic_record_name,
}


def strategy(class_name: str) -> SubjectNameStrategy:
    """The strategy with this name. Raises InvalidSetting."""
    name = class_name.strip()
    for package in _PACKAGES:
        name = name.removeprefix(package)
    if name not in _STRATEGIES:
        raise InvalidSetting(f"There is no subject name strategy {class_name}: {', '.join(_STRATEGIES)} are known.")
    return _STRATEGIES[name]


def _required(name: str | None, is_key: bool) -> str:
    if name is None:
        kind = "key" if is_key else "value"
        raise SerializationError(
            f"The schema of the {kind} has no name, which its subject name strategy needs: it must be an Avro record, "
            "a Protobuf message or a JSON Schema with a title."
        )
    return name
