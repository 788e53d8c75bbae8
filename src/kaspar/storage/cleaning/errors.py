"""Reasons why a log is not cleaned, for now or permanently."""

from kaspar.base.errors import KasparError
from kaspar.storage.swaps import CleaningStopped

__all__ = ["CleaningStopped", "DamagedSegment", "OverfullSegment", "Uncleanable"]


class Uncleanable(KasparError):
    """The log cannot be cleaned, and a retry would not help. It is left unchanged."""


class OverfullSegment(Uncleanable):
    """The new segment would exceed the largest position. In a batch that gets a delete horizon, timestamps are relative
    to it, which may take more bytes than cleaning removes.
    """

    def __init__(self, path: str, most_bytes: int) -> None:
        super().__init__(f"{path} would be larger than the {most_bytes} bytes that a segment can have")
        self.path = path


class DamagedSegment(Uncleanable):
    """A segment is corrupt. It is left unchanged: cleaning could only lose more."""

    def __init__(self, path: str, position: int, problem: str) -> None:
        super().__init__(f"{path} is damaged at position {position}: {problem}")
        self.path = path
        self.position = position
