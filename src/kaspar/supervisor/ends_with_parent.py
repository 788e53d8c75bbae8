"""Runs a program that ends when its parent ends, however that ends: python ends_with_parent.py PARENT_PID COMMAND...

A script that becomes the program. The kernel keeps the request when another program is executed, and so Java, which
cannot make it itself, ends too. It imports nothing of Kaspar, so that it starts in milliseconds.
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
