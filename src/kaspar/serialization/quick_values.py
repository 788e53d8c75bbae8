"""Limits for values that are encoded and decoded on an event loop; others go to processes (`value_processes`)."""

from typing import Final

QUICK_BYTES: Final = 4 * 1024
"""The most JSON that is encoded on the loop, where the size of a value determines how long that takes."""
QUICK_S: Final = 0.002
"""The time limit for a check on the loop whose duration does not follow from the size."""
