"""The clients of other languages. Each has a small program beside this file, built once and kept in the cache."""

import contextlib
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import ClassVar

from tests.compat.drivers.api import Ability
from tests.compat.drivers.json_lines import JsonLinesDriver
from tests.peers.downloads import BuildError, DownloadError, ToolMissingError, cached, require_tool, run_step
from tests.peers.kafka import LIGHT_JVM, POM, classpath

_HERE = Path(__file__).parent
_JAVA = _HERE / "java"
_FRANZ = _HERE / "franz"
_KAFKAJS = _HERE / "kafkajs"


class JavaDriver(JsonLinesDriver):
    """Apache Kafka's own clients, of the peer's version."""

    name: ClassVar[str] = "java"

    def __init__(self, bootstrap: str) -> None:
        super().__init__(java_command(bootstrap))


class FranzGoDriver(JsonLinesDriver):
    name: ClassVar[str] = "franz-go"

    def __init__(self, bootstrap: str) -> None:
        super().__init__(franz_command(bootstrap))


class KafkaJsDriver(JsonLinesDriver):
    name: ClassVar[str] = "kafkajs"
    cannot: ClassVar[Mapping[Ability, str]] = {
        Ability.CONSUME: "it consumes only as a member of a group",
        Ability.NULL_HEADER: "it fails on a header without a value",
        Ability.MAX_TIMESTAMP: "its admin client asks for offsets by time with a version that does not know it",
    }

    def __init__(self, bootstrap: str) -> None:
        super().__init__(kafkajs_command(bootstrap))


def build(names: Collection[str]) -> None:
    """Build the programs of these clients now, as far as that is possible: a test that needs one says why not."""
    for name, program in (
        (JavaDriver.name, _java_classes),
        (FranzGoDriver.name, _franz_program),
        (KafkaJsDriver.name, _kafkajs_folder),
    ):
        if name in names:
            with contextlib.suppress(ToolMissingError, DownloadError, BuildError):
                program()


def java_command(bootstrap: str) -> list[str]:
    java = [require_tool("java"), "-Xmx256m", *LIGHT_JVM, "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"]
    return [*java, "-cp", f"{_java_classes()}:{classpath()}", "ClientDriver", bootstrap]


def franz_command(bootstrap: str) -> list[str]:
    return [str(_franz_program()), bootstrap]


def kafkajs_command(bootstrap: str) -> list[str]:
    return [require_tool("node"), str(_kafkajs_folder() / "driver.js"), bootstrap]


def _java_classes() -> Path:
    sources = sorted(_JAVA.glob("*.java"))

    def build(folder: Path, attempt: int) -> None:
        del attempt
        options = ("-proc:none", "-Werror", "-cp", classpath(), "-d", folder)
        run_step([require_tool("javac"), *options, *sources], folder=folder, failure=BuildError)

    return cached("java-driver", [*sources, POM], build)


def _franz_program() -> Path:
    sources = [_FRANZ / name for name in ("go.mod", "go.sum", *sorted(path.name for path in _FRANZ.glob("*.go")))]

    def build(folder: Path, attempt: int) -> None:
        del attempt
        go = require_tool("go")
        run_step([go, "mod", "download"], folder=_FRANZ)
        run_step([go, "build", "-mod=readonly", "-o", folder / "driver", "."], folder=_FRANZ, failure=BuildError)

    return cached("franz-driver", sources, build) / "driver"


def _kafkajs_folder() -> Path:
    names = ("package.json", "package-lock.json", *sorted(path.name for path in _KAFKAJS.glob("*.js")))

    def build(folder: Path, attempt: int) -> None:
        del attempt
        require_tool("node")
        for name in names:
            shutil.copy(_KAFKAJS / name, folder)
        run_step([require_tool("npm"), "ci", "--no-audit", "--no-fund", "--ignore-scripts"], folder=folder)

    return cached("kafkajs-driver", [_KAFKAJS / name for name in names], build)
