"""The process that encodes and decodes large and costly values (`python -m kaspar.serialization.value_process`).

A value of a megabyte keeps an interpreter busy for a good part of a second, mostly in libraries that do not let another
thread run meanwhile. A small value can take as long to validate. Requests and responses are msgpack.
"""

from typing import Final

import msgspec

from kaspar.base.bounded_cache import BoundedCache
from kaspar.base.errors import KasparError
from kaspar.base.limited_process import Limits, serve
from kaspar.schemas.schema import SchemaType
from kaspar.serialization.values import Values, values_of

LIMITS: Final = Limits(cpu_s=5, memory_bytes=1 << 30, idle_s=60.0)
MAX_RESULT_BYTES: Final = 64 << 20
_MAX_PREPARED: Final = 100
_MAX_PREPARED_CHARACTERS: Final = 4 << 20
"""A prepared schema takes many times the memory of its text."""


class ValueSchema(msgspec.Struct, frozen=True):
    """The schema of values, with all that is needed to prepare it. `references` are pairs of name and text."""

    type: SchemaType
    text: str
    references: tuple[tuple[str, str], ...] = ()
    message: str | None = None

    @property
    def characters(self) -> int:
        return len(self.text) + sum(len(text) for _, text in self.references)


class Task(msgspec.Struct, frozen=True):
    schema: ValueSchema
    data: bytes
    """JSON to encode, or bytes to decode."""
    is_encoded: bool


class Outcome(msgspec.Struct, frozen=True):
    data: bytes = b""
    problem: str | None = None
    """Why there is no data; None if there is."""


class ValueWork:
    def __init__(self) -> None:
        self._prepared: BoundedCache[ValueSchema, Values] = BoundedCache(
            _MAX_PREPARED, max_weight=_MAX_PREPARED_CHARACTERS, weight_of=lambda schema, values: schema.characters
        )

    def do(self, task: Task) -> Outcome:
        try:
            values = self._values(task.schema)
            if task.is_encoded:
                data = msgspec.json.encode(values.from_bytes(task.data))
            else:
                data = values.to_bytes(msgspec.json.decode(task.data))
        except (KasparError, msgspec.MsgspecError) as problem:
            return Outcome(problem=str(problem))
        except RecursionError:
            return Outcome(problem="The value is nested too deeply.")
        if len(data) > MAX_RESULT_BYTES:
            return Outcome(problem=f"The value would have {len(data)} bytes.")
        return Outcome(data)

    def _values(self, schema: ValueSchema) -> Values:
        values = self._prepared.get(schema)
        if values is None:
            values = values_of(schema.type, schema.text, dict(schema.references), schema.message)
            self._prepared.put(schema, values)
        return values


def main() -> None:
    work = ValueWork()
    decoder = msgspec.msgpack.Decoder(Task)
    serve(lambda request: msgspec.msgpack.encode(work.do(decoder.decode(request))), LIMITS)


if __name__ == "__main__":
    main()
