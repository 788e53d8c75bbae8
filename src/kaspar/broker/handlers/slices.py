"""Responses that list tens of thousands of things: made and encoded in slices, so that others have their turn."""

import asyncio
from collections.abc import Iterable
from typing import Final

from kaspar.protocol import codec
from kaspar.protocol.schema import Message

AT_ONCE: Final = 500
"""So many things are looked at in one turn of the event loop; a list of no more is answered without delay."""


async def encoded(listed: Iterable[Message | None], version: int) -> list[bytes]:
    """The elements of an array, each as bytes. None stands for something that was looked at and is not among them."""
    elements = []
    for number, element in enumerate(listed, 1):
        if element is not None:
            elements.append(codec.write(element, version))
        if number % AT_ONCE == 0:
            await asyncio.sleep(0)
    return elements
