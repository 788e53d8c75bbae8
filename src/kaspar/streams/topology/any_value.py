"""How values are passed through a shuffle when the program has not said how to serialize them.

Such bytes live for one micro-batch inside one query, and are never stored.
"""

import pickle
from typing import Any

_TEXT, _PICKLED = b"t", b"p"


class AnyValue:
    """A Serde for any Python object that can be pickled; text, the most common value, is not."""

    def serialize(self, topic: str, value: Any) -> bytes | None:
        if value.__class__ is str:
            return _TEXT + value.encode()
        return None if value is None else _PICKLED + pickle.dumps(value, pickle.HIGHEST_PROTOCOL)

    def deserialize(self, topic: str, data: bytes | None) -> Any:
        if data is None:
            return None
        return data[1:].decode() if data[0] == 0x74 else pickle.loads(data[1:])
