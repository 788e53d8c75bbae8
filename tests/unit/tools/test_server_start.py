"""kafka-server-start: its arguments, and its error message for invalid settings."""

from pathlib import Path

import pytest

from kaspar.cli.main import main as kaspar
from kaspar.tools import server_start


def test_a_settings_file_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        server_start.main([])
    assert ended.value.code == 2
    assert "properties" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "override", "sentence"),
    [
        ("node.id=1\nnum.partitions=none\n", "a=b", "num.partitions"),
        ("node.id=1\n", "num.partitions=0", "num.partitions"),
        ("node.id=1\n", "no equals sign", "no equals sign"),
    ],
)
def test_wrong_settings_end_it_with_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, override: str, sentence: str
) -> None:
    file = tmp_path / "server.properties"
    file.write_text(text)
    assert server_start.main([str(file), "--override", override]) == 1
    stderr = capsys.readouterr().err
    assert stderr.startswith("kaspar: ")
    assert sentence in stderr
    assert stderr.count("\n") == 1


def test_a_file_that_is_not_there_ends_it_with_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert kaspar(["broker", str(tmp_path / "none")]) == 1
    assert "cannot be read" in capsys.readouterr().err


def test_kaspar_without_a_command_shows_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert kaspar([]) == 2
    assert "broker" in capsys.readouterr().out


def test_kaspar_version_shows_which_modules_are_compiled(capsys: pytest.CaptureFixture[str]) -> None:
    assert kaspar(["version"]) == 0
    first, *modules = capsys.readouterr().out.splitlines()
    assert first.startswith("kaspar ")
    assert all("compiled" in module or "interpreted" in module for module in modules)
    assert modules
