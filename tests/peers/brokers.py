"""What a test of clients needs of the brokers it is about, be it one process or a cluster of them."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol


class Leader(NamedTuple):
    """The broker that leads a partition."""

    port: int
    data_dir: Path


class Brokers(Protocol):
    @property
    def bootstrap(self) -> str:
        """What clients connect to: one address or several."""

    @property
    def running(self) -> bool:
        """All of them."""

    def log_text(self) -> str: ...

    def unexpected_errors(self) -> list[str]:
        """What our brokers logged as an ERROR since the last call and nobody expected, tracebacks included."""

    def lead(self, topic: str, partitions: Sequence[int]) -> bool:
        """Whether each of these partitions has a leader that takes requests, of which every broker knows."""

    def leader(self, topic: str, partition: int) -> Leader: ...
