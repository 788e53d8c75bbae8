"""Options of the commands that Kafka writes with argparse4j: its sentences and exit codes."""

import pytest

from kaspar.tools.argparse4j import Argparse4jOptions, to_integer


def _options() -> Argparse4jOptions:
    parser = Argparse4jOptions("kafka-example", help_code=3)
    parser.add_argument("--server")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    show = commands.add_parser("show")
    show.add_argument("--config", "-c", required=True)
    show.add_argument("--number", type=to_integer)
    commands.add_parser("list")
    commands.add_parser("list-all")
    return parser


def test_subcommands_may_be_abbreviated() -> None:
    assert _options().parse_args(["sh", "-c", "x"]).command == "show"
    assert _options().parse_args(["list"]).command == "list"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "too few arguments"),
        (["--server", "x"], "too few arguments"),
        (["--zork"], "unrecognized arguments: '--zork'"),
        (["list", "--zork"], "unrecognized arguments: '--zork'"),
        (["list", "word"], "unrecognized arguments: 'word'"),
        (["zork"], "invalid choice: 'zork' (choose from 'show', 'list', 'list-all')"),
        (["li"], "ambiguous command: li could match list, list-all"),
        (["show"], "argument --config/-c is required"),
        (["show", "--zork"], "unrecognized arguments: '--zork'"),
        (["show", "-c"], "argument --config/-c: expected one argument"),
        (
            ["show", "-c", "x", "--number", "y"],
            "argument --number: could not convert 'y' to Integer (For input string: \"y\")",
        ),
    ],
)
def test_wrong_options(words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        _options().parse_args(words)
    printed = capsys.readouterr()
    assert (ended.value.code, printed.out) == (1, "")
    assert printed.err.startswith("usage: kafka-example")
    assert printed.err.splitlines()[-1] == f"kafka-example: error: {sentence}"


@pytest.mark.parametrize("words", [["--help"], ["show", "-h"]])
def test_help_goes_to_standard_output(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        _options().parse_args(words)
    assert ended.value.code == 3
    assert "--help" in capsys.readouterr().out


def test_options_are_parsed() -> None:
    options = _options().parse_args(["--server", "x", "show", "-c", "file", "--number", "5"])
    assert (options.server, options.command, options.config, options.number) == ("x", "show", "file", 5)
