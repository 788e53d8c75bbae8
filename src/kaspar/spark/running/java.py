"""Finds the Java that Spark runs on, and checks its version.

`JAVA_HOME` wins, as in Spark's own scripts; then `java` on the path, then what Linux distributions keep under
/usr/lib/jvm. `python -m kaspar.spark.running.java --install` (which `make` calls) installs Java where that is allowed.
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
"""The oldest version that Spark 4 supports."""

DEBIAN_PACKAGES: Final = ("openjdk-17-jre-headless", "openjdk-21-jre-headless")
"""The packages with a suitable Java. Which of them exists depends on the release."""

HOW_TO_INSTALL: Final = (
    f"install Java {OLDEST_VERSION} or newer (on Debian and Ubuntu: apt-get install {DEBIAN_PACKAGES[0]}), "
    "or set JAVA_HOME to its folder"
)
_HOMES: Final = Path("/usr/lib/jvm")


class JavaMissing(KasparError):
    """There is no Java that Spark can run on. The text says which one was found, if any, and how to install one."""


@dataclass(frozen=True, slots=True)
class Java:
    home: Path
    version: int


def find_java(
    environment: Mapping[str, str] | None = None, homes: Path = _HOMES, *, for_program: str = "Spark"
) -> Java:
    """The Java that Spark, or another program that uses its jars, will run on."""
    environment = os.environ if environment is None else environment
    chosen = environment.get("JAVA_HOME")
    if chosen:
        program = Path(chosen, "bin", "java")
        version = _version_of(program)
        if version is None:
            raise JavaMissing(f"JAVA_HOME is {chosen}, but {program} does not run: {HOW_TO_INSTALL}")
        if version < OLDEST_VERSION:
            raise JavaMissing(
                f"JAVA_HOME is {chosen}, which is Java {version}, too old for {for_program}: {HOW_TO_INSTALL}"
            )
        return Java(Path(chosen), version)
    on_path = shutil.which("java", path=environment.get("PATH"))
    programs = [Path(on_path)] if on_path else []
    programs += sorted(homes.glob("*/bin/java"))
    too_old = []
    for program in programs:  # running each is slow: stop at the first
        version = _version_of(program)
        if version is not None and version >= OLDEST_VERSION:
            return Java(program.resolve().parent.parent, version)
        if version is not None:
            too_old.append(version)
    if too_old:
        raise JavaMissing(f"{for_program} cannot run on Java {max(too_old)}, which is too old: {HOW_TO_INSTALL}")
    raise JavaMissing(f"{for_program} requires Java, and none was found: {HOW_TO_INSTALL}")


def version_in(text: str) -> int | None:
    """The feature release in the output of `java -version`: 17 for "17.0.15", 8 for "1.8.0_402"."""
    match = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(match[1]) if match else None


def _version_of(program: Path) -> int | None:
    try:
        done = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return version_in(done.stderr + done.stdout) if done.returncode == 0 else None


def install() -> Java:
    """Install Java with apt-get, if there is one and this user is root."""
    manager = shutil.which("apt-get")
    if manager is None or os.geteuid() != 0:
        return find_java()  # raises if there is still none
    print("installing Java for Spark", flush=True)
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for with_new_lists in (False, True):  # a fresh machine has no package lists yet
        if with_new_lists:
            subprocess.run([manager, "-q", "update"], capture_output=True, env=quiet, check=False)
        for package in DEBIAN_PACKAGES:
            command = [manager, "install", "-q", "-y", "--no-install-recommends", package]
            if subprocess.run(command, capture_output=True, env=quiet, check=False).returncode == 0:
                return find_java()
    return find_java()


def main(argv: Sequence[str] | None = None) -> int:
    """Print which Java was found; with --install, install it if allowed. Returns 1 if there is none afterwards."""
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
