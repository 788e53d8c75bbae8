"""One record as a Python object."""

from typing import NamedTuple, TypeAlias

Header: TypeAlias = tuple[str, bytes | None]


class Record(NamedTuple):
    """A record of a batch. Offset -1 means that it has none yet: the builder assigns the next one.

    A header's key that is not UTF-8 keeps its bytes as surrogates (`surrogateescape`), so that it can be
    written again unchanged.
    """

    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()
    offset: int = -1
