"""rdkafka_performance, the load program among librdkafka's examples: built at first use and kept in the cache.

Its source, with librdkafka's, is inside a package of crates.io, of a pinned version and hash.
"""

import hashlib
import json
import os
import urllib.request
from pathlib import Path

from tests.peers.downloads import BuildError, StepError, cached, require_tool, run_step

_MANIFEST = Path(__file__).with_name("rdkafka-performance.json")
_ADDRESS = "https://static.crates.io/crates/{crate}/{crate}-{version}.crate"
_NOT_NEEDED = ("gssapi", "curl", "ssl", "zlib", "lz4-ext")
_TIMEOUT_S = 60.0


def rdkafka_performance() -> Path:
    return cached("rdkafka-performance", [_MANIFEST], _build) / "rdkafka_performance"


def librdkafka_version() -> str:
    version: str = json.loads(_MANIFEST.read_text())["version"]
    return version.partition("+")[2]


def _build(folder: Path, _attempt: int) -> None:
    manifest = json.loads(_MANIFEST.read_text())
    archive = folder / "package.crate"
    try:
        with urllib.request.urlopen(_ADDRESS.format(**manifest), timeout=_TIMEOUT_S) as response:
            archive.write_bytes(response.read())
    except OSError as problem:
        raise StepError(f"the package of librdkafka cannot be fetched: {problem}") from problem
    if hashlib.sha256(archive.read_bytes()).hexdigest() != manifest["sha256"]:
        raise StepError(f"the package of librdkafka does not have the hash that {_MANIFEST.name} names")
    run_step(["tar", "xzf", archive], folder=folder)
    package = folder / f"{manifest['crate']}-{manifest['version']}"
    source = package / "librdkafka"
    run_step(["./configure", *(f"--disable-{part}" for part in _NOT_NEEDED)], folder=source, failure=BuildError)
    make = [require_tool("make"), f"-j{os.cpu_count() or 1}"]
    run_step([*make, "-C", "src", "librdkafka.a"], folder=source, failure=BuildError)
    run_step([*make, "-C", "examples", "rdkafka_performance"], folder=source, failure=BuildError)
    (source / "examples" / "rdkafka_performance").rename(folder / "rdkafka_performance")
    run_step(["rm", "-rf", archive, package], folder=folder)
