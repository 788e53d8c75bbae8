"""The source distribution holds all that a build needs, and the wheel built from it works in an empty environment.

The extensions are those that `make install` has compiled: their names carry the hash of their source, so a build takes
them only where they are current. `make wheel` recompiles them.
"""

import os
import shutil
import signal
import subprocess
import sys
import tarfile
import textwrap
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from kaspar import __version__
from kaspar.base.compiled import COMPILED_MODULES, load
from tests.peers.observed import wait_until
from tests.peers.wire import free_port, responds_to_api_versions

ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).parent / "uv"
NAME = f"kaspar-{__version__}"
TO_BUILD = ("pyproject.toml", "setup.py", "README.md", "LICENSE")
SECONDS = 100

pytestmark = pytest.mark.timeout(240)  # the first test to run makes what all of them use

PRODUCE_AND_CONSUME = """
    import sys
    from confluent_kafka import Consumer, Producer

    servers = {"bootstrap.servers": sys.argv[1]}
    producer = Producer(servers | {"enable.idempotence": True})
    producer.produce("greetings", key="en", value="hello")
    assert producer.flush(30) == 0
    consumer = Consumer(servers | {"group.id": "first", "auto.offset.reset": "earliest"})
    consumer.subscribe(["greetings"])
    [message] = consumer.consume(1, timeout=30)
    assert (message.error(), message.key(), message.value()) == (None, b"en", b"hello")
    consumer.close()
"""


def run(*command: str | Path, cwd: Path) -> str:
    """What a command writes, in an environment that knows nothing of this source tree."""
    names = ("PYTHONPATH", "VIRTUAL_ENV", "KASPAR_COMPILED", "KASPAR_INTERPRETED")
    environment = {name: value for name, value in os.environ.items() if name not in names}
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


def build(kind: str, source: Path, target: Path) -> Path:
    run(UV, "build", kind, "--no-build-isolation", "--python", sys.executable, "--out-dir", target, cwd=source)
    [built] = [path for path in target.iterdir() if path.suffix in (".gz", ".whl")]
    return built


def with_generated_c(source: Path) -> Path:
    """A source tree with the C files that Cython wrote for it when kaspar was installed here."""
    if (ROOT / "build/cython").is_dir():
        shutil.copytree(ROOT / "build/cython", source / "build/cython")
    return source


@pytest.fixture(scope="module")
def source_distribution(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sdist")
    ignored = shutil.ignore_patterns("*.so", "__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "src", folder / "source/src", ignore=ignored)
    for name in TO_BUILD:
        shutil.copy2(ROOT / name, folder / "source")
    return build("--sdist", with_generated_c(folder / "source"), folder / "built")


@pytest.fixture(scope="module")
def wheel(source_distribution: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    with tarfile.open(source_distribution) as archive:
        archive.extractall(folder, filter="data")
    source = with_generated_c(folder / NAME)
    with (source / "setup.cfg").open("a") as settings:
        settings.write("\n[build]\nbuild_lib = build/lib\n")
    for extension in (Path(str(load(module).__file__)) for module in COMPILED_MODULES):
        if extension.suffix == ".so":
            copy = source / "build/lib" / extension.relative_to(ROOT / "src")
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(extension, copy)  # newer than the C files, so it is not compiled again
    return build("--wheel", source, folder / "built")


@pytest.fixture(scope="module")
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the commands are, in an environment that had nothing in it before the wheel was installed."""
    folder = tmp_path_factory.mktemp("installed")
    run(UV, "venv", "--quiet", "--python", sys.executable, "environment", cwd=folder)
    known_versions = ("--constraint", ROOT / "requirements.lock")
    python = folder / "environment/bin/python"
    run(UV, "pip", "install", "--quiet", "--python", python, *known_versions, f"{wheel}[tools]", cwd=folder)
    return python.parent


@pytest.fixture
def broker(programs: Path, tmp_path: Path) -> Iterator[str]:
    """The address of a broker that the installed command runs with the example settings; SIGTERM stops it cleanly."""
    port, output = free_port(), tmp_path / "output.txt"
    own = (
        f"listeners=PLAINTEXT://127.0.0.1:{port}",
        f"log.dirs={tmp_path}/data",
        "kaspar.metrics.listener=127.0.0.1:0",
    )
    overrides = [word for each in own for word in ("--override", each)]
    command = [str(programs / "kafka-server-start"), str(ROOT / "deploy/server.properties"), *overrides]
    with output.open("w") as written, subprocess.Popen(command, cwd=tmp_path, stderr=written) as process:
        try:
            wait_until(lambda: responds_to_api_versions("127.0.0.1", port), "the installed broker serves")
            yield f"127.0.0.1:{port}"
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
            assert [line for line in output.read_text().splitlines() if " WARNING " in line or " ERROR " in line] == []
        finally:
            process.kill()


def test_source_distribution_holds_every_source_file(source_distribution: Path) -> None:
    with tarfile.open(source_distribution) as archive:
        held = {name.removeprefix(f"{NAME}/") for name in archive.getnames()}
    files = {path for path in (ROOT / "src").rglob("*") if path.is_file()}
    built = {path for path in files if path.suffix in (".so", ".pyc") or path.parent.suffix == ".egg-info"}
    assert {*TO_BUILD, *(str(path.relative_to(ROOT)) for path in files - built)} - held == set()


def test_wheel_holds_every_source_file_the_page_of_the_console_and_the_compiled_core(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        held = set(archive.namelist())
    page = {path for path in (ROOT / "src/kaspar/console/assets").rglob("*") if path.is_file()}
    assert page
    sources = {str(path.relative_to(ROOT / "src")) for path in {*(ROOT / "src").rglob("*.py"), *page}}
    assert sources - held == set()
    extensions = sorted(name.partition(".")[0].rpartition("_")[0] for name in held if name.endswith(".so"))
    expected = (module.rpartition(".") for module in COMPILED_MODULES)
    assert extensions == sorted(f"{package.replace('.', '/')}/_{name}" for package, _, name in expected)


def test_installed_commands_are_there_and_the_core_is_compiled(programs: Path, tmp_path: Path) -> None:
    first, *modules = run(programs / "kaspar", "version", cwd=tmp_path).splitlines()
    assert first.startswith(f"kaspar {__version__},")
    assert modules == [f"  {module}: compiled" for module in COMPILED_MODULES]
    for command in ("kafka-server-start", "kafka-server-stop", "kafka-storage", "zookeeper-security-migration"):
        assert "usage" in run(programs / command, "--help", cwd=tmp_path)
    for command in (
        "kafka-leader-election",
        "kafka-reassign-partitions",
        "kafka-replica-verification",
        "kafka-streams-application-reset",
    ):
        assert run(programs / command, "--version", cwd=tmp_path) == f"{__version__}\n"


def test_installed_broker_takes_and_serves_records(programs: Path, broker: str, tmp_path: Path) -> None:
    run(programs / "python", "-c", textwrap.dedent(PRODUCE_AND_CONSUME), broker, cwd=tmp_path)


def test_example_unit_is_one_that_systemd_takes(programs: Path, tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not on this machine")
    unit = (ROOT / "deploy/kaspar.service").read_text()
    assert "/opt/kaspar/bin/" in unit
    (tmp_path / "kaspar.service").write_text(unit.replace("/opt/kaspar/bin/", f"{programs}/"))
    verified = subprocess.run(
        [program, "verify", tmp_path / "kaspar.service"], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert (verified.returncode, verified.stderr) == (0, "")
