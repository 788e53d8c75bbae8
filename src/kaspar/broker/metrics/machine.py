"""Metrics of the machine that warn of problems for a broker: space on disks, and its clock."""

import os
import time
from collections.abc import Callable, Iterator
from typing import Final

from kaspar.base.exposition import Family, Kind, Sample, labels
from kaspar.broker.metrics.families import BrokerFamily, Scrape, own


def _space_family(name: str, text: str, read: Callable[[os.statvfs_result], int]) -> BrokerFamily:
    def samples(scrape: Scrape) -> Iterator[Sample]:
        for directory in scrape.broker.log_dirs():
            if directory.online:
                try:
                    found = os.statvfs(directory.path)
                except OSError:  # the directory is just failing
                    continue
                yield labels(logDirectory=directory.path), read(found)

    return Family(f"kaspar_log_directory_{name}_bytes", Kind.GAUGE, text, samples, ("logDirectory",))


MACHINE: Final[tuple[BrokerFamily, ...]] = (
    _space_family(
        "free",
        "The space available to the broker on the file system of a log directory.",
        lambda found: found.f_bavail * found.f_frsize,
    ),
    _space_family(
        "total", "The size of the file system of a log directory.", lambda found: found.f_blocks * found.f_frsize
    ),
    own(
        "kaspar_time_seconds",
        Kind.GAUGE,
        "The time by the broker's clock, in seconds since 1970. Compared with the time of the scrape it reveals a "
        "wrong clock.",
        lambda _: time.time(),
    ),
)
