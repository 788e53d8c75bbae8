"""Unused ports of this machine.

Ports from the kernel's range for outgoing connections are avoided: while a server is down, a client that tries to
connect to its port there may connect to itself, and the server can then no longer listen.
"""

import itertools
import random
import socket
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Final

from kaspar.base.errors import KasparError
from kaspar.supervisor.plan import HOST, ServicePlan
from kaspar.web.catalogue import SERVICES

_FIRST_PORT: Final = 10_000
_USUAL_END: Final = 32_768
_RANGE: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")


def is_free(port: int) -> bool:
    return _problem_with(port) is None


def refuse_used_ports(ports: Sequence[int]) -> None:
    """Raise KasparError if a broker cannot listen. The first port is that of broker 1."""
    for number, port in enumerate(ports, 1):
        if problem := _problem_with(port):
            raise KasparError(
                f"broker {number} cannot listen on {HOST}:{port} ({problem}): choose another --port, or "
                "stop the program that uses it"
            )


def refuse_used_service_ports(services: Sequence[ServicePlan]) -> None:
    """Raise KasparError if a service cannot listen."""
    for service in services:
        if problem := _problem_with(service.port):
            raise KasparError(
                f"the {SERVICES[service.name].title} cannot listen on {HOST}:{service.port} ({problem}): choose "
                f"another --{service.name}-port, 0 for any free port, or disable it with --without {service.name}"
            )


def _problem_with(port: int) -> str | None:
    """The reason why nothing can listen on this port now, or None."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as problem:
            return problem.strerror or str(problem)
    return None


def free_ports(wanted: Sequence[int] = (), *, reserved: Collection[int] = ()) -> Iterator[int]:
    """The wanted ports, with a substitute for each that is not free, then an endless sequence of others. Never a
    reserved port.
    """
    given = set(reserved)
    for port in itertools.chain(wanted, _candidates()):
        chosen = port
        while chosen in given or not is_free(chosen):
            chosen = next(_candidates())
        given.add(chosen)
        yield chosen


def consecutive_free_ports(count: int) -> range:
    while True:
        first = next(_candidates())
        ports = range(first, first + count)
        if all(is_free(port) for port in ports):
            return ports


def _candidates() -> Iterator[int]:
    end = _end_of_our_range()
    while True:
        yield random.randrange(_FIRST_PORT, end)


def _end_of_our_range() -> int:
    """The first port for outgoing connections, if there are enough ports below it."""
    try:
        first_outgoing = int(_RANGE.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return _USUAL_END
    return first_outgoing if first_outgoing >= 2 * _FIRST_PORT else _USUAL_END
