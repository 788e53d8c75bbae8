"""How lines become records: Kafka's line reader and Confluent's three, by class name."""

from collections.abc import Callable, Mapping
from typing import Protocol

from kaspar.tools.console_producer.lines import READER_CLASS, InputRecord, LineParser
from kaspar.tools.schema_records.formats import format_of_reader


class LineReader(Protocol):
    @property
    def values_only(self) -> bool:
        """Whether a whole line is a value, so that it need not be parsed."""

    def parse(self, line: bytes, number: int) -> InputRecord:
        """Parse a line. Line numbers start at 1. Raises CommandFailed."""


def line_reader(class_name: str, topic: str, properties: Mapping[str, str]) -> LineReader | None:
    """The line reader of this class; None if it is unknown. Raises CommandFailed, and InvalidSetting for schema
    registry properties.
    """
    if class_name == READER_CLASS:
        return LineParser(properties)
    schema_format = format_of_reader(class_name)
    if schema_format is None:
        return None
    from kaspar.tools.schema_records.serializing import field_serializers

    return _SchemaLineReader(LineParser(properties), *field_serializers(schema_format, topic, properties))


class _SchemaLineReader:
    """Splits a line as Kafka's reader does, and passes key and value to their serializers."""

    def __init__(
        self, lines: LineParser, key: Callable[[bytes, int], bytes], value: Callable[[bytes, int], bytes]
    ) -> None:
        self._lines = lines
        self._key = key
        self._value = value

    @property
    def values_only(self) -> bool:
        return False

    def parse(self, line: bytes, number: int) -> InputRecord:
        key, value, headers = self._lines.parse(line, number)
        return InputRecord(
            None if key is None else self._key(key, number),
            None if value is None else self._value(value, number),
            headers,
        )
