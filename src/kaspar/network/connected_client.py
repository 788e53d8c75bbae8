"""What the client of a connection reports about itself (KIP-511), and a callback for its disconnect."""

from collections.abc import Callable
from typing import Final

UNKNOWN_SOFTWARE: Final = "unknown"
"""Kafka's ClientInformation.UNKNOWN_NAME_OR_VERSION."""


MAX_NAME_LENGTH: Final = 256
"""Longer names are cut, because there may be many connections."""


class ConnectedClient:
    __slots__ = ("on_disconnect", "software_name", "software_version")

    def __init__(self) -> None:
        self.software_name = UNKNOWN_SOFTWARE
        self.software_version = UNKNOWN_SOFTWARE
        self.on_disconnect: Callable[[], None] | None = None

    def uses(self, software_name: str, software_version: str) -> None:
        self.software_name = software_name[:MAX_NAME_LENGTH] or UNKNOWN_SOFTWARE
        self.software_version = software_version[:MAX_NAME_LENGTH] or UNKNOWN_SOFTWARE

    def disconnected(self) -> None:
        on_disconnect, self.on_disconnect = self.on_disconnect, None
        if on_disconnect is not None:
            on_disconnect()
