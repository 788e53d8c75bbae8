"""Whether the process behind an address has ended.

A refused connection proves it only for an address of this machine, where nothing stands between: then nobody listens on
the port. Anything else (a time-out, an unreachable host, a refusal that another machine's firewall may have sent) says
nothing, and only the end of the process's session does.
"""

import asyncio
import socket
from typing import Any, Final

PROBE_WITHIN_S: Final = 1.0


async def has_ended(host: str, port: int) -> bool:
    """Whether no process listens there, for certain."""
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
    """Only addresses of this machine can be bound."""
    try:
        probe.bind((address[0], 0, *address[2:]))  # any port of the address
    except OSError:
        return False
    return True
