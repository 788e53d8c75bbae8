"""Garbage that holds itself is found, but not often."""

import subprocess
import sys

GARBAGE_OF_A_BURST = """
import gc
from kaspar.base.garbage import NEW_OBJECTS, collect_garbage_rarely

class Node:
    def __init__(self):
        self.itself = self

collect_garbage_rarely()
collections = lambda: sum(generation["collections"] for generation in gc.get_stats())
before = collections()
burst = [[] for _ in range(NEW_OBJECTS // 2)]
after_burst = collections()
for _ in range(2 * NEW_OBJECTS):
    Node()
print(after_burst - before, sum(isinstance(each, Node) for each in gc.get_objects()) <= NEW_OBJECTS)
"""


def test_a_burst_sets_off_no_search_for_garbage_and_garbage_is_found_in_the_end() -> None:
    command = [sys.executable, "-c", GARBAGE_OF_A_BURST]
    printed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    assert printed.split() == ["0", "True"]
