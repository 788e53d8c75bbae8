"""Actors that are killed, paused and started again: the current process of each, and the former ones.

Every start of a role is an actor of its own (`processor-1.4` is the fifth life of `processor-1`), so that a history
distinguishes a client from its replacement.
"""

import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos.actors.launch import Settings, start
from tests.chaos.history import Journal, Killed, Paused
from tests.peers.observed import wait_until

STOP_SECONDS = 60.0


@dataclass
class Role:
    name: str
    module: str
    settings: Callable[[str], Settings]  # for the actor of that name
    may_end_with: tuple[int, ...] = ()  # exit codes after which it is simply started again; it notes its own end then
    lives: int = 0
    process: subprocess.Popen[bytes] | None = None
    paused: bool = False

    @property
    def actor(self) -> str:
        """The current process."""
        return f"{self.name}.{self.lives - 1}"


@dataclass
class Lives:
    folder: Path
    roles: dict[str, Role] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._journal = Journal(self.folder, "director")

    def add(self, role: Role) -> None:
        self.roles[role.name] = role
        self._start(role)

    def _start(self, role: Role) -> None:
        role.lives += 1
        role.process = start(role.module, role.settings(role.actor), self.folder / f"{role.actor}.errors")

    def kill(self, name: str) -> None:
        role = self.roles[name]
        assert role.process is not None
        self._journal.note(Killed(actor=role.actor))
        role.process.kill()
        role.process.wait()
        role.paused = False

    def restart(self, name: str) -> None:
        self._start(self.roles[name])

    def pause(self, name: str) -> None:
        role = self.roles[name]
        assert role.process is not None
        self._journal.note(Paused(actor=role.actor))
        role.process.send_signal(signal.SIGSTOP)
        role.paused = True

    def resume(self, name: str) -> None:
        role = self.roles[name]
        if role.process is not None and role.paused:
            role.process.send_signal(signal.SIGCONT)
            role.paused = False

    def look_after(self) -> None:
        """Restart actors that ended in an expected way; any other end is a failure."""
        for role in self.roles.values():
            if role.process is None or (code := role.process.poll()) is None:
                continue
            assert code in role.may_end_with, f"{role.actor} ended with code {code}:\n{self.errors(role.actor)}"
            self._start(role)

    def stop(self, name: str) -> None:
        """Ask it to finish, and wait for that."""
        role = self.roles[name]
        self.resume(name)
        assert role.process is not None
        role.process.terminate()
        code = role.process.wait(STOP_SECONDS)
        foreseen = (0, -signal.SIGTERM, *role.may_end_with)  # by the signal itself: it had not begun yet
        assert code in foreseen, f"{role.actor} ended with code {code}:\n{self.errors(role.actor)}"
        role.process = None

    def stop_all(self) -> None:
        for name, role in self.roles.items():
            if role.process is not None:
                self.stop(name)

    def kill_all(self) -> None:
        """Whatever happened: nothing is left behind."""
        for role in self.roles.values():
            if role.process is not None and role.process.poll() is None:
                role.process.kill()
                role.process.wait()

    def wait_until(self, condition: Callable[[], bool], what: str, *, seconds: float = 60.0) -> None:
        """As `wait_until`, restarting dead actors meanwhile."""

        def look_and_ask() -> bool:
            self.look_after()
            return condition()

        wait_until(look_and_ask, what, seconds=seconds)

    def errors(self, actor: str) -> str:
        path = self.folder / f"{actor}.errors"
        return path.read_text(errors="replace")[-3000:] if path.exists() else ""
