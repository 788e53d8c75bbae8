"""Which values may be encoded and decoded on an event loop; others go to processes (`value_processes`)."""

from typing import Final

QUICK_BYTES: Final = 4 * 1024
"""The most JSON that is encoded on the loop, as far as the size of a value says how long that takes."""
QUICK_S: Final = 0.002
"""How long a check may take there whose time does not follow from the size."""
