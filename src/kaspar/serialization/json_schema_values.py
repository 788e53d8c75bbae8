"""Values of a JSON Schema: JSON in UTF-8, which is checked before it is written, as by Confluent's tools."""

from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any

import msgspec

from kaspar.serialization.errors import InvalidValue, TooCostly, UnreadableBytes, reason_of
from kaspar.serialization.quick_values import QUICK_BYTES, QUICK_S


class JsonSchemaValues:
    """The values of one schema."""

    def __init__(self, text: str, references: Mapping[str, str]) -> None:
        """Raises InvalidSchema."""
        from kaspar.schemas.json_schema import parse
        from kaspar.schemas.json_schema.validation import InvalidValue as Unfitting
        from kaspar.schemas.json_schema.validation import Stopped, check_value

        self._schema = parse(text, references)
        self._check = check_value
        self._unfitting = Unfitting
        self._stopped = Stopped

    def to_bytes(self, value: Any) -> bytes:
        return self._to_bytes(value, None)

    def is_quick(self, data: bytes) -> bool:
        return len(data) <= QUICK_BYTES

    def to_bytes_quickly(self, value: Any) -> bytes:
        until = perf_counter() + QUICK_S
        try:
            return self._to_bytes(value, lambda: perf_counter() >= until)
        except self._stopped:
            raise TooCostly from None

    def _to_bytes(self, value: Any, should_stop: Callable[[], bool] | None) -> bytes:
        try:
            self._check(self._schema, value, should_stop)
            return msgspec.json.encode(value)
        except self._unfitting as problem:
            raise InvalidValue(f"The value is not of the schema: {reason_of(problem)}.") from None
        except RecursionError:
            raise InvalidValue("The value is nested too deeply.") from None
        except UnicodeEncodeError:
            raise InvalidValue("A text has half of a surrogate pair in it, which UTF-8 has not.") from None

    def from_bytes(self, data: bytes) -> Any:
        """Decode the value without checking it: a consumer gets what the producer wrote."""
        try:
            return msgspec.json.decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise UnreadableBytes(f"The bytes are no JSON ({reason_of(error)}).") from error
