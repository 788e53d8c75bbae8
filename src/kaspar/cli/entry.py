"""The entry point of the program `kaspar`.

Importing the command line takes as long as running many commands, so Ctrl-C during the import also ends the process
without a traceback.
"""

import signal


def main() -> int:
    """Run the command line. Returns the exit code."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:  # otherwise the caller, such as nohup, ignores Ctrl-C
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from kaspar.cli.main import main as run_command

    signal.signal(signal.SIGINT, handler)
    return run_command()
