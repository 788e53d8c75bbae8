"""A wall clock that a test sets forward and back while the broker runs: a small library, preloaded into it."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.peers.downloads import require_tool

_SOURCE = Path(__file__).with_suffix(".c")
_SECOND_NS = 1_000_000_000


@dataclass
class FaultyClock:
    library: Path
    setting: Path

    @classmethod
    def prepare(cls, workshop: Path) -> "FaultyClock":
        """Compile the library; the clock is right at first. ToolMissingError without a C compiler."""
        library = workshop / "faulty_clock.so"
        command = [require_tool("cc"), "-O1", "-Wall", "-Werror", "-shared", "-fPIC", str(_SOURCE), "-o", str(library)]
        subprocess.run([*command, "-ldl"], check=True)
        clock = cls(library, workshop / "clock")
        clock.setting.write_bytes((0).to_bytes(8, "little"))
        return clock

    @property
    def environment(self) -> dict[str, str]:
        """With which the broker must be started."""
        return {"LD_PRELOAD": str(self.library), "FAULTY_CLOCK": str(self.setting)}

    def set_ahead(self, seconds: int) -> None:
        """From now on the wall clock is that far ahead of the true one, or behind it."""
        with self.setting.open("r+b") as file:
            file.write((seconds * _SECOND_NS).to_bytes(8, "little", signed=True))
