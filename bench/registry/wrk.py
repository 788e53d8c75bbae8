"""wrk: an HTTP client in C, so that the load takes little of the machine from what is measured."""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.programs import LoadError
from tests.peers.debian import not_found, require_packages

_SCRIPTS: Final = Path(__file__).with_name("scripts")
_PATIENCE_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Load:
    requests: int
    per_second: float
    p99_ms: float


def require_wrk() -> None:
    require_packages(["wrk"], lambda: not_found(["wrk"]))


def run(url: str, script: str, *, connections: int, seconds: float, settings: Mapping[str, str]) -> Load:
    """Run wrk with one thread and this number of connections, each of which sends its next request after a response.
    `settings` are the environment of the script. Raises LoadError if any response is an error."""
    done = subprocess.run(
        [
            "wrk",
            *("--threads", "1", "--connections", str(connections), "--duration", f"{max(1, round(seconds))}s"),
            *("--timeout", "30s", "--script", str(_SCRIPTS / f"{script}.lua"), url),
        ],
        capture_output=True,
        text=True,
        timeout=seconds + _PATIENCE_S,
        env={"LUA_PATH": f"{_SCRIPTS}/?.lua", **settings},
        check=False,
    )
    report = done.stdout.rpartition("REPORT ")[2]
    if done.returncode != 0 or not report:
        raise LoadError(f"wrk has failed: {(done.stderr or done.stdout).strip()[-300:]}")
    found = json.loads(report)
    if found["errors"]:
        raise LoadError(f"{found['errors']} of {found['requests']} requests to {url} have failed")
    return Load(found["requests"], found["requests"] / found["seconds"], found["p99_ms"])
