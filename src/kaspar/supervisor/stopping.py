"""Stops the members of a cluster: services, brokers one after the other, the controller last, then ZooKeeper.

A stopping broker transfers its leaderships, and needs the controller for that. The last brokers have no broker left to
transfer them to.
"""

import signal
import time
from collections.abc import Callable, Sequence
from typing import Final

from kaspar.supervisor.members import Member, Members
from kaspar.supervisor.readiness import first_view

STOP_TIMEOUT_S: Final = 120.0
"""A process that takes longer is killed. The next start recovers its logs."""


def stop_members(
    members: Members,
    wait: Callable[[float], bool],
    *,
    say: Callable[[str], None] = lambda line: None,
    timeout_s: float = STOP_TIMEOUT_S,
) -> None:
    """Stop all members. `wait` returns when a child may have exited, or on timeout; if it returns False, all members
    are killed.
    """
    for group in [members.services, *([broker] for broker in stopping_order(members)), members.zookeepers]:
        if not _stop(group, wait, say, timeout_s):
            break
    for member in members.all:
        member.child.kill()


def stopping_order(members: Members) -> list[Member]:
    """All brokers, with the controller last."""
    if len(members.brokers) == 1:
        return list(members.brokers)
    view = first_view([members.contacts[broker.id] for broker in members.brokers if broker.child.is_running])
    controller_id = None if view is None else view.controller_id
    return sorted(members.brokers, key=lambda broker: (broker.id == controller_id, broker.id))


def _stop(
    members: Sequence[Member], wait: Callable[[float], bool], say: Callable[[str], None], timeout_s: float
) -> bool:
    until = time.monotonic() + timeout_s
    for member in members:
        member.child.send(signal.SIGTERM)
    while running := [member for member in members if member.child.is_running]:
        left_s = until - time.monotonic()
        if left_s <= 0:
            for member in running:
                say(f"{member.name} did not stop within {timeout_s:.0f} s and was killed")
                member.child.kill()
        elif not wait(left_s):
            return False
    return True
