"""The serde for values in a shuffle for which the program has specified none.

These bytes exist only within one micro-batch of one query, and are never stored.
"""

import pickle
from typing import Any

_TEXT, _PICKLED = b"t", b"p"


class AnyValue:
    """A Serde that pickles any Python object, except for text, the most common value."""

    def serialize(self, topic: str, value: Any) -> bytes | None:
        if value.__class__ is str:
            return _TEXT + value.encode()
        return None if value is None else _PICKLED + pickle.dumps(value, pickle.HIGHEST_PROTOCOL)

    def deserialize(self, topic: str, data: bytes | None) -> Any:
        if data is None:
            return None
        return data[1:].decode() if data[0] == 0x74 else pickle.loads(data[1:])
