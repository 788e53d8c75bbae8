"""Stream time."""

UNKNOWN_TIME = -1


class Clock:
    """A stream time: the largest timestamp seen. It is kept from one micro-batch to the next."""

    __slots__ = ("now",)

    def __init__(self, now: int = UNKNOWN_TIME) -> None:
        self.now = now
