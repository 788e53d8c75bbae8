"""Why a log is not cleaned, for now or for good."""

from kaspar.base.errors import KasparError


class CleaningStopped(KasparError):
    """Somebody else needs the log, or the broker stops. Nothing is lost; it is cleaned another time."""


class Uncleanable(KasparError):
    """The log cannot be cleaned, and trying again would not help. It is left as it is."""


class OverfullSegment(Uncleanable):
    """Timestamps are counted from the delete horizon in a batch that gets one, which may take more bytes than cleaning
    removes: more than positions in a segment go."""

    def __init__(self, path: str, most_bytes: int) -> None:
        super().__init__(f"{path} would be larger than the {most_bytes} bytes that a segment can have")
        self.path = path


class DamagedSegment(Uncleanable):
    """The bytes of a segment are not what was written. It is left as it is: cleaning could only lose more."""

    def __init__(self, path: str, position: int, problem: str) -> None:
        super().__init__(f"{path} is damaged at position {position}: {problem}")
        self.path = path
        self.position = position
