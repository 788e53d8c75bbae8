"""Why a log is not cleaned, for now or for good."""

from kaspar.base.errors import KasparError


class CleaningStopped(KasparError):
    """Somebody else needs the log, or the broker stops. Nothing is lost; it is cleaned another time."""


class DamagedSegment(KasparError):
    """The bytes of a segment are not what was written. It is left as it is: cleaning could only lose more."""

    def __init__(self, path: str, position: int, problem: str) -> None:
        super().__init__(f"{path} is damaged at position {position}: {problem}")
        self.path = path
        self.position = position
