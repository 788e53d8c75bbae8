"""How often a process that serves requests looks for garbage.

What a request leaves behind is freed with its last reference, without the cyclic garbage collector; hundreds of
requests that wait at the same time, as in a rebalance, would trigger it again and again. A full run stops the process
while it visits all objects, most of which stay: 130 ms in a registry of some thousand schemas.
"""

import gc
from typing import Final

NEW_OBJECTS: Final = 10_000
"""New objects after which the collector runs; Python's default is 700."""


def collect_garbage_rarely() -> None:
    """Called when the process has started. What exists by then is never collected."""
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS)
