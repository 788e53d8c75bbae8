"""Memory that is needed again and again stays with the process."""

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


def test_blocks_that_come_and_go_are_faulted_in_once() -> None:
    command = [sys.executable, "-c", FAULTS_WHILE_BLOCKS_COME_AND_GO]
    done, faults = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.splitlines()
    if done == "False":
        pytest.skip("the C library here is not glibc")
    without, kept = map(int, faults.split())
    assert kept < without / 10
