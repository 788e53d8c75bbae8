"""Whether the process behind an address has ended.

Only a refused connection to an address of this machine proves it: nothing is in between, so nothing listens on the
port. Anything else (a timeout, an unreachable host, a refusal that may come from another machine's firewall) proves
nothing; then only the end of the process's session does.
"""

import asyncio
import socket
from typing import Any, Final

PROBE_WITHIN_S: Final = 1.0


async def has_ended(host: str, port: int) -> bool:
    """Whether it is certain that no process listens there."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        return False
    outcomes = [await _refuses(family, address) for family, _, _, _, address in found]
    return bool(outcomes) and all(outcomes)


async def _refuses(family: int, address: Any) -> bool:
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        if not _is_of_this_machine(probe, address):
            return False
        probe.setblocking(False)
        try:
            await asyncio.wait_for(asyncio.get_running_loop().sock_connect(probe, address), PROBE_WITHIN_S)
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
        return False


def _is_of_this_machine(probe: socket.socket, address: Any) -> bool:
    """Whether the address is of this machine: no other address can be bound."""
    try:
        probe.bind((address[0], 0, *address[2:]))  # any port of the address
    except OSError:
        return False
    return True
