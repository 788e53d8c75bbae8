"""Memory that is needed again and again stays with the process; garbage that holds itself is found, but not often."""

import subprocess
import sys

import pytest

FAULTS_WHILE_BLOCKS_COME_AND_GO = """
import resource
from kaspar.broker.memory import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(50):
        blocks = [bytes(bytearray(1 << 20)) for _ in range(4)]
        del blocks
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

without = faults()
print(keep_freed_memory())
faults()
print(without, faults())
"""

GARBAGE_OF_A_BURST = """
import gc
from kaspar.broker.memory import NEW_OBJECTS, collect_garbage_rarely

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


def test_blocks_that_come_and_go_are_faulted_in_once() -> None:
    command = [sys.executable, "-c", FAULTS_WHILE_BLOCKS_COME_AND_GO]
    done, faults = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.splitlines()
    if done == "False":
        pytest.skip("the C library here is not glibc")
    without, kept = map(int, faults.split())
    assert kept < without / 10
