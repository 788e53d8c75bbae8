"""Waits until members are ready, without blocking on a member that does not respond."""

import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from kaspar.base.errors import KasparError
from kaspar.supervisor.members import Member

_NO_RESPONSE: Final = "It does not respond."
_PAUSE_S: Final = 0.02


class Probes:
    """Checks whether members are ready, each in its own thread, so that one that does not respond does not delay the
    others.
    """

    def __init__(self, member_count: int) -> None:
        self._threads = ThreadPoolExecutor(member_count, thread_name_prefix="kaspar-probe")
        self._asked: dict[Member, Future[str | None]] = {}
        self._problems: dict[Member, str] = {}

    def is_ready(self, member: Member) -> bool:
        """Whether the last probe found the member ready. Does not block; if not ready, starts another probe."""
        asked = self._asked.get(member)
        if asked is not None and asked.done():
            del self._asked[member]
            problem = asked.result()
            if problem is None:
                return True
            self._problems[member] = problem
        if member not in self._asked:
            self._asked[member] = self._threads.submit(member.problem)
        return False

    def forget(self, member: Member) -> None:
        """Discard the probe of a member whose process has exited: its result does not apply to the next process."""
        self._asked.pop(member, None)
        self._problems.pop(member, None)

    def problem_of(self, member: Member) -> str:
        """The reason why the last probe found the member not ready."""
        return self._problems.get(member, _NO_RESPONSE)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def wait_ready(members: Sequence[Member], timeout_s: float) -> None:
    """Return when all members are ready. Raises KasparError if one of them exits, or on timeout."""
    until = time.monotonic() + timeout_s
    waiting = list(members)
    probes = Probes(len(waiting))
    try:
        while waiting := [member for member in waiting if not probes.is_ready(member)]:
            for member in waiting:
                if not member.child.is_running:
                    raise start_failure(member)
            if time.monotonic() > until:
                first = waiting[0]
                raise KasparError(f"{first.name} was not ready within {timeout_s:.0f} s: {probes.problem_of(first)}")
            time.sleep(_PAUSE_S)
    finally:
        probes.close()


def start_failure(member: Member) -> KasparError:
    """The error for a member that exited before it was ready, with its exit status and the reason from its log."""
    reason = member.child.last_problem()
    words = "" if reason is None else f": {_shown(reason)}"
    return KasparError(f"{member.name} {member.child.how_it_ended()}{words} (log: {member.child.log_file})")


def _shown(line: str, most: int = 300) -> str:
    line = line.removeprefix("kaspar: ")
    return line if len(line) <= most else f"{line[:most]}..."
