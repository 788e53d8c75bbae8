"""The exit codes of a host and of a standalone program."""

from typing import Final

INTERRUPTED: Final = 130
"""A second Ctrl-C ended the process at once."""
SESSION_LOST: Final = 70
"""Spark's JVM has ended, or a program has stopped the session."""
RENEWED: Final = 75
"""Modules in a program's folder have changed, and another process has to import them."""
