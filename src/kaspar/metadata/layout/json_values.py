"""Encodes the values of nodes as JSON, so that people can read them."""

import json
from typing import Any


def encode(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def decode(value: bytes) -> Any:
    return json.loads(value)
