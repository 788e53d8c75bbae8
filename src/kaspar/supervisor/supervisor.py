"""Runs the members of a cluster until a stop is requested.

If a member exits before the cluster was ready for the first time, its settings or its data are at fault: the start
fails with the last error in its log. Later, a member that exits is restarted, after a delay that grows if it exits
again soon.
"""

import contextlib
import os
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

from kaspar.base.errors import KasparError
from kaspar.base.processes import ProcessId, end_all
from kaspar.supervisor.back_off import BackOff
from kaspar.supervisor.folder import Folder, Running, RunningMember
from kaspar.supervisor.members import Member, Members
from kaspar.supervisor.probes import Probes, start_failure
from kaspar.supervisor.readiness import first_view
from kaspar.supervisor.signals import Signals
from kaspar.supervisor.stopping import stop_members

INTERRUPTED: Final = 130
"""The exit code after a second Ctrl-C."""

_LOOK_EVERY_S: Final = 0.05
_FIRST_PROGRESS_S: Final = 10.0
_PROGRESS_EVERY_S: Final = 30.0


@dataclass(slots=True)
class _Life:
    """The current process of a member, or the wait for the next one."""

    started_at: float = 0.0
    is_ready: bool = False
    starts_at: float | None = None
    back_off: BackOff = field(default_factory=BackOff)


def end_leftovers(folder: Folder) -> None:
    """End the members of a supervisor that was killed. They are exiting, but still use their ports and data."""
    earlier = folder.running()
    if earlier is not None:
        end_all(earlier.processes())


class Supervisor:
    def __init__(
        self,
        folder: Folder,
        members: Members,
        say: Callable[[str], None],
        *,
        when_complete: Callable[[], None] = lambda: None,
        when_ready: Callable[[float], None] = lambda seconds: None,
    ) -> None:
        """`when_complete` is called in a thread when all brokers see each other for the first time. `when_ready` is
        called after that, when all members are ready, with the number of seconds since the start."""
        self._when_complete = when_complete
        self._when_ready = when_ready
        self._folder = folder
        self._members = members
        self._say = say
        self._lives = {member: _Life() for member in members.all}
        self._was_complete = False
        """Whether all brokers have seen each other, at least once."""
        self._was_ready = False
        """Whether all members have been ready, at least once."""
        self._probes = Probes(len(members.all))
        self._view_thread = ThreadPoolExecutor(1, thread_name_prefix="kaspar-view")
        self._viewed: Future[bool] | None = None
        self._begun_at = time.monotonic()
        self._progress_at = self._begun_at + _FIRST_PROGRESS_S

    def run(self) -> int:
        """Run until a stop is requested, and return the exit code. Raises KasparError if the start fails."""
        with Signals() as signals:
            try:
                for member in self._members.all:
                    self._start(member)
                while not signals.stop_requested:
                    self._look()
                    signals.wait(None if self._is_quiet() else _LOOK_EVERY_S)
            finally:
                self._stop(signals)
            return INTERRUPTED if signals.is_impatient else 0

    # -- starting ------------------------------------------------------------------------------------------------------

    def _start(self, member: Member) -> None:
        life = self._lives[member]
        member.child.start()
        life.started_at, life.is_ready, life.starts_at = time.monotonic(), False, None
        self._record()

    def _is_quiet(self) -> bool:
        return self._was_ready and all(life.is_ready for life in self._lives.values())

    # -- watching ------------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        now = time.monotonic()
        for member, life in self._lives.items():
            if life.starts_at is not None:
                if now >= life.starts_at:
                    self._start_again(member, life, now)
            elif not member.child.is_running:
                self._ended(member, life, now)
            elif not life.is_ready and self._probes.is_ready(member):
                life.is_ready = True
                self._record()
                if self._was_ready:
                    self._say(f"{member.name} is ready again")
        if not self._was_ready:
            self._look_at_start(now)

    def _ended(self, member: Member, life: _Life, now: float) -> None:
        if not self._was_ready:
            raise start_failure(member)
        delay_s = life.back_off.next_delay_s(lived_s=now - life.started_at)
        life.starts_at, life.is_ready = now + delay_s, False
        self._probes.forget(member)
        self._record()
        how = member.child.how_it_ended()
        self._say(f"{member.name} {how} and will be restarted in {delay_s:g} s (log: {member.child.log_file})")

    def _start_again(self, member: Member, life: _Life, now: float) -> None:
        try:
            self._start(member)
        except KasparError as problem:  # no more processes, or no space for its log, which may be temporary
            delay_s = life.back_off.next_delay_s(lived_s=0.0)
            life.starts_at = now + delay_s
            self._say(f"{member.name} cannot be started; retrying in {delay_s:g} s: {problem}")

    def _look_at_start(self, now: float) -> None:
        waiting = [member for member, life in self._lives.items() if not life.is_ready]
        if all(member in self._members.services for member in waiting):
            self._was_complete = self._was_complete or self._is_complete()
        if not waiting and self._was_complete:
            self._was_ready = True
            self._when_ready(now - self._begun_at)
        elif now >= self._progress_at:
            self._progress_at = now + _PROGRESS_EVERY_S
            for member in waiting:
                self._say(f"waiting for {member.name}: {self._probes.problem_of(member)}")

    def _is_complete(self) -> bool:
        """Whether a broker sees all brokers and a controller. Like the probes of members, the request is made in a
        thread.
        """
        viewed, self._viewed = self._viewed, None
        if viewed is not None and viewed.done():
            if viewed.result():
                return True
            viewed = None
        self._viewed = viewed or self._view_thread.submit(self._sees_all)
        return False

    def _sees_all(self) -> bool:
        plan = self._members.plan
        view = first_view([self._members.contacts[broker.id] for broker in plan.brokers])
        if view is None or not view.is_complete(plan):
            return False
        self._when_complete()
        return True

    # -- stopping ------------------------------------------------------------------------------------------------------

    def _stop(self, signals: Signals) -> None:
        def wait(timeout_s: float) -> bool:
            self._record()
            if not signals.is_impatient:
                signals.wait(timeout_s)
            return not signals.is_impatient

        self._probes.close()
        self._view_thread.shutdown(wait=False, cancel_futures=True)
        stop_members(self._members, wait, say=self._say)
        self._folder.remove_running()

    def _record(self) -> None:
        def state(member: Member) -> RunningMember:
            is_running = member.child.is_running
            return RunningMember(member.child.id if is_running else None, is_running and self._lives[member].is_ready)

        running = Running(
            ProcessId.of(os.getpid()),
            {member.id: state(member) for member in self._members.brokers},
            {member.id: state(member) for member in self._members.zookeepers},
            next(map(state, self._members.services), RunningMember()),
        )
        with contextlib.suppress(KasparError):  # a full disk must not end a running cluster
            self._folder.write_running(running)
