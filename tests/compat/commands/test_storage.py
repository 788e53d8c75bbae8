"""kafka-storage: its options and what it says, beside Kafka's. What it does to directories: tests/integration."""

import re
from pathlib import Path

import pytest

from tests.compat.commands.catalog import STORAGE
from tests.compat.commands.complaints import complaint
from tests.compat.tools.comparing import run_ours
from tests.peers.kafka_tools import KafkaTools

CLUSTER_ID = "gT5ajU5xT5OGEw961POH7Q"
SETTINGS = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@localhost:9999
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://localhost:9998,CONTROLLER://localhost:9999
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
"""

SAME = [
    (),
    ("odd",),
    ("info",),
    ("format", "-t", CLUSTER_ID),
    ("format", "-c", "x", "-t", CLUSTER_ID, "--standalone", "--no-initial-controllers"),
    ("format", "-c", "x", "-t", CLUSTER_ID, "-N", "-I", "y"),
    ("version-mapping",),
    ("version-mapping", "-r", "3.9"),
    ("version-mapping", "--release-version", "odd"),
    ("feature-dependencies",),
    ("feature-dependencies", "-f", "transaction.version=2", "--feature", "eligible.leader.replicas.version=1"),
    ("feature-dependencies", "-f", "odd=2"),
]


@pytest.mark.parametrize("arguments", SAME, ids=" ".join)
def test_what_needs_no_directory(kafka_tools: KafkaTools, arguments: tuple[str, ...]) -> None:
    theirs, ours = kafka_tools.run(STORAGE.kafka_class, *arguments), run_ours(STORAGE, *arguments)
    assert complaint(ours) == complaint(theirs)


@pytest.mark.parametrize("subcommand", ["info", "format", "version-mapping", "feature-dependencies", "random-uuid"])
def test_subcommands_have_the_same_options(kafka_tools: KafkaTools, subcommand: str) -> None:
    arguments = (subcommand, "--help")
    theirs, ours = kafka_tools.run(STORAGE.kafka_class, *arguments), run_ours(STORAGE, *arguments)
    assert ours.code == theirs.code == 0
    named = re.compile(r"(?<![\w-])(--?[a-zA-Z][\w-]*)")
    assert set(named.findall(ours.output.partition("\n\n")[0])) >= set(
        named.findall(theirs.output.partition("\n\n")[0])
    )


def test_directories_are_shown(kafka_tools: KafkaTools, tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("near", "far", "away")]
    config = tmp_path / "server.properties"

    def see(*shown: Path) -> None:
        config.write_text(f"{SETTINGS}log.dirs={','.join(map(str, shown))}\n")
        theirs, ours = (each("info", "-c", config) for each in (_theirs, _ours))
        assert ours == theirs

    def _theirs(*arguments: str | Path) -> object:
        return kafka_tools.run(STORAGE.kafka_class, *arguments)

    def _ours(*arguments: str | Path) -> object:
        return run_ours(STORAGE, *arguments)

    see(folders[0])
    config.write_text(f"{SETTINGS}log.dirs={folders[0]},{folders[1]}\n")
    assert run_ours(STORAGE, "format", "-c", config, "-t", CLUSTER_ID).code == 0
    see(folders[0])
    see(folders[0], folders[1], folders[2])
    folders[2].mkdir()
    see(folders[2])
    see(folders[0], folders[2])
    (folders[2] / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=another\n")
    see(folders[0], folders[2])


def test_new_cluster_starts_with_the_chosen_levels(kafka_tools: KafkaTools, tmp_path: Path) -> None:
    config = tmp_path / "server.properties"
    config.write_text(f"{SETTINGS}log.dirs={tmp_path / 'data'}\n")
    for level in ("odd", "transaction.version=9", "odd=1", "transaction.version=x"):
        arguments = ("format", "-c", config, "-t", CLUSTER_ID, "-f", level)
        theirs, ours = kafka_tools.run(STORAGE.kafka_class, *arguments), run_ours(STORAGE, *arguments)
        assert (ours.code, ours.output) == (theirs.code, theirs.output) == (1, "")
        assert complaint(ours).errors.partition(" Supported")[0] == complaint(theirs).errors.partition(" Supported")[0]
    assert run_ours(STORAGE, "format", "-c", config, "-r", "3.9", "-f", "group.version=1").code == 0
    assert b'"group.version":1' in _stored(tmp_path / "data").replace(b" ", b"")
    assert b"transaction.version" not in _stored(tmp_path / "data")


def _stored(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.glob("*")) if path.is_file())
