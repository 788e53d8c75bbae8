"""Completion in a real bash; the scripts for zsh and fish at least come out."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kaspar.cli.main import main
from tests.integration.cli.conftest import Kaspar
from tests.peers.kaspar import KasparProcess
from tests.peers.wire import free_port

PROGRAMS = Path(sys.executable).parent


def completed(*lines: str) -> list[list[str]]:
    """What bash offers behind each line."""
    script = 'eval "$(kaspar completion bash)"'
    for line in lines:
        words = line.split(" ")
        script += (
            f"; COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; COMPREPLY=(); "
            f"_kaspar_completion kaspar '{words[-1]}' '{words[-2]}'; "
            'echo "${COMPREPLY[@]}"'
        )
    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        env={**os.environ, "PATH": f"{PROGRAMS}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stderr == ""
    return [offered.split() for offered in done.stdout.splitlines()]


def test_bash_completes_commands_and_options() -> None:
    first, commands, option, shells = completed(
        "kaspar to", "kaspar topic ", "kaspar topic create --par", "kaspar completion "
    )
    assert first == ["topic"]
    assert {"create", "delete", "describe", "list"} <= set(commands)
    assert option == ["--partitions"]
    assert shells == ["bash", "zsh", "fish"]


def test_bash_completes_names_of_the_cluster(kaspar: Kaspar, broker: KasparProcess) -> None:
    topic = kaspar.name("orders")
    kaspar.run("topic", "create", topic)
    assert completed(
        f"kaspar topic describe -b {broker.bootstrap} {topic[:-3]}",
        f"kaspar config list -b {broker.bootstrap} topic/{topic[:-3]}",
        f"kaspar topic describe -b 127.0.0.1:{free_port()} {topic[:-3]}",
    ) == [[topic], [f"topic/{topic}"], []]


def test_bash_completes_profiles() -> None:
    main(["profile", "create", "production"])
    assert completed("kaspar topic list --profile pro", "kaspar profile use pro") == [["production"]] * 2


@pytest.mark.parametrize(("shell", "words"), [("zsh", "compdef"), ("fish", "complete --no-files --command kaspar")])
def test_other_shells_have_a_script(shell: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    assert words in capsys.readouterr().out


def test_names_with_control_characters_are_not_completed(kaspar: Kaspar, broker: KasparProcess) -> None:
    topic, group = kaspar.name("t"), kaspar.name("g")
    kaspar.run("topic", "create", topic)
    for name in (group, f"{group}\x1b[31m", f"{group}\nforged"):
        kaspar.run("group", "seek", name, "--to", "end", "--topic", topic)
    assert completed(f"kaspar group describe -b {broker.bootstrap} {group}") == [[group]]
