"""What a test does when something it needs is not on this machine: it is skipped, and with CI=true it fails."""

import os
from collections.abc import Callable
from typing import TypeVar

import pytest

from tests.peers.downloads import ToolMissingError

T = TypeVar("T")


def unless_missing(make: Callable[[], T]) -> T:
    """What `make` makes. A failed download is no reason to skip: it fails the test under its own name."""
    try:
        return make()
    except ToolMissingError as missing:
        reason = str(missing)
    if os.environ.get("CI") == "true":
        pytest.fail(f"{reason}, and with CI=true everything must be")
    pytest.skip(reason)
