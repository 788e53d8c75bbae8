"""Values of a JSON Schema: JSON in UTF-8, which is checked before it is written, as Confluent's tools do."""

from collections.abc import Mapping
from typing import Any

import msgspec

from kaspar.serialization.errors import InvalidValue, UnreadableBytes, reason_of


class JsonSchemaValues:
    __slots__ = ("_check",)

    def __init__(self, text: str, references: Mapping[str, str]) -> None:
        """Raises InvalidSchema."""
        from kaspar.schemas.json_schema.validation import validator

        self._check = validator(text, references)

    def to_bytes(self, value: Any) -> bytes:
        self._check(value)
        try:
            return msgspec.json.encode(value)
        except RecursionError:
            raise InvalidValue("The value is nested too deeply.") from None

    def from_bytes(self, data: bytes) -> Any:
        """Not checked by the schema: a consumer gets what the producer wrote."""
        try:
            return msgspec.json.decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise UnreadableBytes(f"The bytes are no JSON ({reason_of(error)}).") from error
