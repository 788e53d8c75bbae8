"""Runs a program that ends when its parent ends: python ends_with_parent.py PARENT_PID COMMAND...

This script replaces itself with the program. PR_SET_PDEATHSIG survives execve, so it also works for Java, which cannot
set it itself. It imports nothing of Kaspar, so that it starts in milliseconds.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    parent, command = int(sys.argv[1]), sys.argv[2:]
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        sys.exit("the parent has already ended")
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
