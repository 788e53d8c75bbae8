"""Java, which Spark runs on: where it is, whether it is new enough, and the sentence that says how to get it.

`JAVA_HOME` is respected, as Spark's own scripts do; then `java` on the path counts, then what Linux distributions keep
under /usr/lib/jvm. `python -m kaspar.spark.java --install` (which `make` calls) installs it where that is allowed.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kaspar.base.errors import KasparError

OLDEST_VERSION: Final = 17
"""What Spark 4 needs."""

DEBIAN_PACKAGES: Final = ("openjdk-17-jre-headless", "openjdk-21-jre-headless")
"""Which of them there is depends on the release."""

HOW_TO_GET_IT: Final = (
    f"install Java {OLDEST_VERSION} or newer (on Debian and Ubuntu: apt-get install {DEBIAN_PACKAGES[0]}), "
    "or set JAVA_HOME to where it is"
)
_HOMES: Final = Path("/usr/lib/jvm")


class JavaMissing(KasparError):
    """There is no Java that Spark could run on. The text says what was found, and how to get one."""


@dataclass(frozen=True, slots=True)
class Java:
    home: Path
    version: int


def find_java(environment: Mapping[str, str] | None = None, homes: Path = _HOMES) -> Java:
    """The Java that Spark will run on."""
    environment = os.environ if environment is None else environment
    chosen = environment.get("JAVA_HOME")
    if chosen:
        program = Path(chosen, "bin", "java")
        version = _version_of(program)
        if version is None:
            raise JavaMissing(f"JAVA_HOME is {chosen}, but {program} does not run: {HOW_TO_GET_IT}")
        if version < OLDEST_VERSION:
            raise JavaMissing(f"JAVA_HOME is {chosen}, which is Java {version}, too old for Spark: {HOW_TO_GET_IT}")
        return Java(Path(chosen), version)
    on_path = shutil.which("java", path=environment.get("PATH"))
    programs = [Path(on_path)] if on_path else []
    programs += sorted(homes.glob("*/bin/java"))
    too_old = []
    for program in programs:  # each is run, which takes a while: no more of them than needed
        version = _version_of(program)
        if version is not None and version >= OLDEST_VERSION:
            return Java(program.resolve().parent.parent, version)
        if version is not None:
            too_old.append(version)
    if too_old:
        raise JavaMissing(f"Spark needs Java, and {max(too_old)} is too old: {HOW_TO_GET_IT}")
    raise JavaMissing(f"Spark needs Java, and there is none here: {HOW_TO_GET_IT}")


def version_in(text: str) -> int | None:
    """The feature release in what `java -version` says: 17 of "17.0.15", 8 of "1.8.0_402"."""
    match = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(match[1]) if match else None


def _version_of(program: Path) -> int | None:
    try:
        done = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return version_in(done.stderr + done.stdout) if done.returncode == 0 else None


def install() -> Java:
    """Install Java with the machine's package manager, where this user may and the manager is Debian's."""
    manager = shutil.which("apt-get")
    if manager is None or os.geteuid() != 0:
        return find_java()  # raises the sentence
    print("installing Java for Spark", flush=True)
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for with_new_lists in (False, True):  # on a fresh machine the lists of packages have to come first
        if with_new_lists:
            subprocess.run([manager, "-q", "update"], capture_output=True, env=quiet, check=False)
        for package in DEBIAN_PACKAGES:
            command = [manager, "install", "-q", "-y", "--no-install-recommends", package]
            if subprocess.run(command, capture_output=True, env=quiet, check=False).returncode == 0:
                return find_java()
    return find_java()


def main(argv: Sequence[str] | None = None) -> int:
    """Say which Java there is; with --install, get it where that is allowed. 1 if there is none afterwards."""
    arguments = sys.argv[1:] if argv is None else argv
    try:
        try:
            java = find_java()
        except JavaMissing:
            if "--install" not in arguments or os.environ.get("JAVA_HOME"):
                raise
            java = install()
    except JavaMissing as problem:
        print(f"kaspar: {problem}", file=sys.stderr)
        return 1
    if "--install" not in arguments:
        print(f"Java {java.version} in {java.home}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
