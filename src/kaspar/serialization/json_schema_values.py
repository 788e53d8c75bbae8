"""Values of a JSON Schema: JSON in UTF-8, which is checked before it is written, as Confluent's tools do."""

from collections.abc import Mapping
from typing import Any

import msgspec

from kaspar.serialization.errors import InvalidValue, UnreadableBytes, reason_of


class JsonSchemaValues:
    """Prepared for one schema."""

    def __init__(self, text: str, references: Mapping[str, str]) -> None:
        """Raises InvalidSchema."""
        from kaspar.schemas.json_schema import parse
        from kaspar.schemas.json_schema.validation import InvalidValue as Unfitting
        from kaspar.schemas.json_schema.validation import check_value

        self._schema = parse(text, references)
        self._check = check_value
        self._unfitting = Unfitting

    def to_bytes(self, value: Any) -> bytes:
        try:
            self._check(self._schema, value)
            return msgspec.json.encode(value)
        except self._unfitting as problem:
            raise InvalidValue(f"The value is not of the schema: {reason_of(problem)}.") from None
        except RecursionError:
            raise InvalidValue("The value is nested too deeply.") from None
        except UnicodeEncodeError:
            raise InvalidValue("A text has half of a surrogate pair in it, which UTF-8 has not.") from None

    def from_bytes(self, data: bytes) -> Any:
        """Not checked by the schema: a consumer gets what the producer wrote."""
        try:
            return msgspec.json.decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise UnreadableBytes(f"The bytes are no JSON ({reason_of(error)}).") from error
