"""How often a process that serves requests runs the cyclic garbage collector.

The objects of a request are freed with their last reference, without the collector; but hundreds of requests that wait
at the same time, as in a rebalance, would trigger it again and again. A full run stops the process while it visits all
objects, most of which stay: 130 ms in a registry of some thousand schemas.
"""

import gc
from typing import Final

NEW_OBJECTS: Final = 10_000
"""New objects after which the collector runs; Python's default is 700."""


def collect_garbage_rarely() -> None:
    """Configure the collector after the process has started. Objects that exist by then are never collected."""
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS)
