"""Bytes that are nearly a message: what a broken or malicious peer sends."""

import random

_NASTY = [
    b"\xff\xff\xff\xff\x0f",  # a compact length of nearly 2**32
    b"\xff\xff\xff\xff\x7f",  # a varint of more than 32 bits
    b"\xff\xff\xff\xff\xff\xff",  # a varint that does not end; negative lengths
    b"\x7f\xff\xff\xff",  # the largest length of older versions
    b"\x80\x00\x00\x00",
    b"\xff\xff\xff\xfe",  # a length of -2
    b"\x00",
]


def mutate(data: bytes, randomness: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(randomness.randint(1, 3)):
        position = randomness.randint(0, len(changed))
        match randomness.randrange(5):
            case 0:
                del changed[position:]
            case 1:
                changed[position : position + 1] = randomness.randbytes(1)
            case 2:
                nasty = randomness.choice(_NASTY)
                changed[position : position + len(nasty)] = nasty
            case 3:
                changed[position:position] = randomness.choice(_NASTY)
            case _:
                del changed[position : position + randomness.randint(1, 4)]
    return bytes(changed)
