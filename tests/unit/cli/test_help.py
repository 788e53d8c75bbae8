"""Every command of `kaspar`: its help, its examples, and what happens if it is called wrongly."""

import subprocess
import sys
from collections.abc import Iterator

import click
import pytest

from kaspar import __version__
from kaspar.cli.failures import INTERRUPTED, USAGE
from kaspar.cli.main import ALIASES, SECTIONS, kaspar, main


def _commands(group: click.Group, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group, info_name="kaspar")
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield (*words, name), command
        if isinstance(command, click.Group):
            yield from _commands(command, (*words, name))


ALL = dict(_commands(kaspar))


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_help_has_a_sentence_and_examples(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    command = ALL[words]
    assert main([*words, "--help"]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"Usage: kaspar {' '.join(words)}")
    assert command.help
    assert command.get_short_help_str(200)
    assert "xample" in text
    assert f"kaspar {words[0]}" in text
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{parameter.name} is not explained"


def test_list_of_commands_loads_none_of_them() -> None:
    program = (
        "import sys; from kaspar.cli.main import main; main(['--help']); "
        "sys.exit(' '.join({'kaspar.cli.topic', 'kaspar.client', 'rich', 'asyncio', 'ssl'} & sys.modules.keys()) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Manage topics and groups" in done.stdout


def test_names_that_people_guess_are_understood(capsys: pytest.CaptureFixture[str]) -> None:
    names = {name for section in SECTIONS.values() for name in section}
    assert set(ALIASES.values()) <= names
    assert not names & ALIASES.keys()
    assert main(["topics", "ls", "--help"]) == 0
    assert "List topics" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["pipelin"], "unknown command 'kaspar pipelin'; did you mean 'pipeline'? (try 'kaspar --help')"),
        (["topic", "crate"], "did you mean 'create'? (try 'kaspar topic --help')"),
        (["topic", "create"], "missing argument 'TOPIC...' (try 'kaspar topic create --help')"),
        (["topic", "list", "--bogus"], "no such option '--bogus' (try 'kaspar topic list --help')"),
        (["topic", "create", "a", "-p", "many"], "'many' is not a valid integer"),
        (["topic", "list", "-X", "nonsense"], "-X nonsense is not NAME=VALUE"),
        (["topic", "list", "-X", "request.timeout.ms=soon"], "request.timeout.ms must be a number of milliseconds"),
        (["topic", "alter", "a"], "--set NAME=VALUE or --unset NAME is required"),
        (["topic", "add-partitions", "a"], "either --num N or --to N is required"),
        (["topic", "list", "-b", "nowhere"], "nowhere is not a list of host:port"),
        (["config", "get", "tropic/a", "b"], "write KIND/NAME"),
        (["config", "get", "broker/one", "b"], "a broker is named by its id"),
        (["acl", "add"], "--principal, --operation and a resource"),
        (["acl", "add", "--principal", "User:a", "--operation", "fly", "--topic", "a"], "unknown operation fly"),
        (["acl", "remove"], "a --principal or a resource"),
        (["quota", "set", "producer_byte_rate=1"], "--user, --client-id or --ip is required"),
        (
            ["quota", "set", "--ip", "1.1.1.1", "--user", "a", "producer_byte_rate=1"],
            "--ip cannot be combined with --user or --client-id",
        ),
        (["quota", "set", "--user", "a", "--default-user", "producer_byte_rate=1"], "exclude each other"),
        (["quota", "set", "--user", "a", "producer_byte_rate=fast"], "must be a number"),
        (["metadata", "move", "file", "--dry-run", "--undo"], "--dry-run cannot be combined with --undo"),
        (["completion", "powershell"], "'powershell' is not one of"),
    ],
)
def test_wrong_usage_is_one_sentence(arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == USAGE
    error = capsys.readouterr().err
    assert error.startswith("kaspar: ")
    assert sentence in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("group", ["topic", "config", "pipeline"])
def test_group_without_a_command_prints_its_help(group: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([group]) == USAGE
    assert "Commands:" in capsys.readouterr().out


def test_help_and_version_are_where_people_look_for_them(capsys: pytest.CaptureFixture[str]) -> None:
    def printed(*arguments: str) -> str:
        assert main(arguments) == 0
        return capsys.readouterr().out

    assert printed("help") == printed("--help")
    assert printed("help", "topics", "create") == printed("topic", "create", "--help").replace(
        "kaspar topic", "kaspar topics", 1
    )
    assert printed("--version") == f"kaspar {__version__}\n"
    assert main(["help", "topic", "crate"]) == USAGE
    assert "did you mean 'create'" in capsys.readouterr().err
    assert main(["help", "version", "x"]) == USAGE
    assert "'kaspar version' has no commands" in capsys.readouterr().err


def test_ctrl_c_ends_with_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("kaspar.client.admin.topics.list_topics", interrupt)
    assert main(["topic", "list"]) == INTERRUPTED
    assert capsys.readouterr().err == ""


def test_a_broker_is_run_unless_a_command_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (
        ["broker", "/nowhere"],
        ["broker", "run", "/nowhere"],
        ["broker", "--override", "a=b", "/nowhere"],
    ):
        assert main(arguments) == 1
        assert "/nowhere cannot be read" in capsys.readouterr().err
