"""A disk that fails, or takes the process with it, when a test says so, and forgets what was not synced when the power
is cut.

A small library, preloaded into the broker, does the failing and notes each sync (faulty_disk.c).

`cut_power`, after kill -9, does to every log segment and index what a disk may do: keep all of what was not synced,
none of it, a part, or zeros in its place. A file whose name was never synced with its directory may be gone altogether.
SQLite's files are left alone: what they survive is SQLite's own matter.
"""

import random
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from tests.peers.downloads import require_tool

_SOURCE = Path(__file__).with_name("faulty_disk.c")
_SUFFIXES = (".log", ".index", ".timeindex", ".snapshot")


@dataclass
class FaultyDisk:
    library: Path
    journal: Path
    folder: Path | None = None
    cut_bytes: int = 0
    removed: int = 0
    _durable: dict[str, int] = field(default_factory=dict)
    _names: dict[str, set[str]] = field(default_factory=dict)
    _read_bytes: int = 0

    @classmethod
    def prepare(cls, workshop: Path, folder: Path | None = None) -> "FaultyDisk":
        """Compile the library. `folder` is what can fail. ToolMissingError without a C compiler."""
        library = workshop / "faulty_disk.so"
        command = [require_tool("cc"), "-O1", "-Wall", "-Werror", "-shared", "-fPIC", str(_SOURCE), "-o", str(library)]
        subprocess.run([*command, "-ldl"], check=True)
        return cls(library, workshop / "syncs", folder)

    @property
    def environment(self) -> dict[str, str]:
        """With which the broker must be started."""
        environment = {"LD_PRELOAD": str(self.library), "SYNC_JOURNAL": str(self.journal)}
        return environment | ({"FAULTY_FOLDER": str(self.folder)} if self.folder is not None else {})

    def fail(self) -> None:
        """From now on every write and sync in the folder gives an I/O error."""
        assert self.folder is not None
        self.folder.with_name(f"{self.folder.name}.fails").touch()

    def fail_to_sync(self) -> None:
        """From now on every sync in the folder gives an I/O error; writes go on."""
        assert self.folder is not None
        self.folder.with_name(f"{self.folder.name}.fails-to-sync").touch()

    def die_after(self, writes: int) -> None:
        """Kill the process when it has written to a file in the folder that often, and is about to do so again."""
        assert self.folder is not None
        self.folder.with_name(f"{self.folder.name}.dies").write_text(str(writes))

    def live_again(self) -> None:
        assert self.folder is not None
        self.folder.with_name(f"{self.folder.name}.dies").unlink()

    def work_again(self) -> None:
        assert self.folder is not None
        for flag in self.folder.parent.glob(f"{self.folder.name}.fails*"):
            flag.unlink()

    def cut_power(self, data_dir: Path, rng: random.Random) -> None:
        """The broker is dead: make its log directory what it may be after the power comes back."""
        self._read_journal()
        for folder in [path for path in data_dir.iterdir() if path.is_dir()]:
            synced_names = self._names.get(str(folder), set())
            for path in sorted(folder.iterdir()):
                if path.suffix in _SUFFIXES:
                    self._strike(path, path.name in synced_names, rng)

    def _strike(self, path: Path, name_is_durable: bool, rng: random.Random) -> None:
        size = path.stat().st_size
        durable = min(self._durable.get(str(path), 0), size)
        if not name_is_durable and durable == 0 and rng.random() < 0.5:
            path.unlink()
            self.removed += 1
            return
        if durable == size:
            return
        match rng.choice(("none", "part", "zeros", "all")):
            case "none":
                kept = durable
            case "part":
                kept = rng.randint(durable, size)
            case "zeros":
                kept = rng.randint(durable, size)
                with path.open("r+b") as file:
                    file.seek(kept)
                    file.write(bytes(size - kept))
                self.cut_bytes += size - kept
                return
            case _:
                kept = size
        with path.open("r+b") as file:
            file.truncate(kept)
        self.cut_bytes += size - kept

    def _read_journal(self) -> None:
        with self.journal.open("rb") as file:
            file.seek(self._read_bytes)
            text = file.read()
        self._read_bytes += len(text)
        directory = ""
        for line in text.decode().splitlines():
            kind, _, rest = line.partition(" ")
            if kind == "F":
                size, _, path = rest.partition(" ")
                # The last sync counts, not the largest: a file may have been cut since.
                self._durable[path] = int(size)
            elif kind == "D":
                directory = rest
                self._names[directory] = set()
            else:
                self._names[directory].add(rest)
