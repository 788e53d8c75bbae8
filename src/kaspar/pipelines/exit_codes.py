"""The exit codes of a host and of a program that runs a pipeline by itself."""

from typing import Final

INTERRUPTED: Final = 130
"""A second Ctrl-C has ended it at once."""
SESSION_LOST: Final = 70
"""Spark's JVM has ended, or a program has stopped the session."""
RENEWED: Final = 75
"""Modules beside a program have changed, and another process has to import them."""
