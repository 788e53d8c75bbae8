"""Where the program `kaspar` begins.

Importing the command takes as long as many commands do: Ctrl-C meanwhile ends the process without a traceback.
"""

import signal


def main() -> int:
    """The exit code."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:  # otherwise the caller ignores Ctrl-C, as nohup does
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from kaspar.cli.main import main as run_command

    signal.signal(signal.SIGINT, handler)
    return run_command()
