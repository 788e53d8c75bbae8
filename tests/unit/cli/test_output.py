"""Tables, results and exit codes of commands."""

import json

import pytest

from kaspar.base.errors import ErrorCode, KasparError, Refused
from kaspar.base.sentences import counted
from kaspar.cli.asking import in_batches, with_progress
from kaspar.cli.failures import FAILED, NO_BROKER, NOT_FOUND, NOT_PERMITTED, NoBroker, explain, worst
from kaspar.cli.output import Column, Done, Format, Output, Row, aligned, decimal_size, shown, size

COLUMNS = [Column("name", "TOPIC"), Column("partitions", "PARTITIONS"), Column("bytes", "SIZE", size)]
ROWS: list[Row] = [
    {"name": "orders", "partitions": 12, "bytes": 1536, "id": "x"},
    {"name": "a", "partitions": None, "bytes": 7, "id": "y"},
]


def test_columns_are_aligned_and_numbers_stand_right() -> None:
    assert aligned(COLUMNS, ROWS) == [
        "TOPIC   PARTITIONS    SIZE",
        "orders          12  1.5KiB",
        "a                -      7B",
    ]
    assert aligned(COLUMNS, ROWS, headers=False) == ["orders  12  1.5KiB", "a        -      7B"]


def test_names_that_others_chose_cannot_control_the_terminal() -> None:
    assert aligned(COLUMNS[:1], [{"name": "a\nforged"}, {"name": "\x1b[31mred"}]) == [
        "TOPIC",
        r"a\nforged",
        r"\x1b[31mred",
    ]


def test_json_and_yaml_have_all_values_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    Output(Format.JSON).table(COLUMNS, ROWS)
    assert json.loads(capsys.readouterr().out) == ROWS
    Output(Format.JSON).table(COLUMNS, [], empty="nothing")
    assert capsys.readouterr() == ("[]\n", "")
    Output(Format.YAML).table(COLUMNS, ROWS[:1])
    assert capsys.readouterr().out == "- name: orders\n  partitions: 12\n  bytes: 1536\n  id: x\n"


def test_nothing_is_said_on_standard_error_so_that_a_pipe_stays_empty(capsys: pytest.CaptureFixture[str]) -> None:
    Output().table(COLUMNS, [], empty="There are no topics.")
    assert capsys.readouterr() == ("", "There are no topics.\n")


def test_a_terminal_gets_colours_unless_they_are_not_wanted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    columns = [Column("lag", "LAG", alarms=bool)]

    def drawn(output: Output) -> str:
        output.table(columns, [{"lag": 5}])
        return capsys.readouterr().out

    red = "\x1b[31m"
    assert red in drawn(Output())
    assert red not in drawn(Output(color=False))
    monkeypatch.setenv("NO_COLOR", "1")
    text = drawn(Output())
    assert red not in text
    assert "LAG" in text


def test_bar_moves_on_a_terminal_only(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(with_progress([1, 2, 3], "Deleting")) == [1, 2, 3]
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm-256color")
    assert list(with_progress([1, 2, 3], "Deleting")) == [1, 2, 3]
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Deleting" in captured.err
    assert in_batches(range(5), 2) == [[0, 1], [2, 3], [4]]


def test_several_results_share_one_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    missing = Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
    done = [Done("topic a", {"topic": "a"}, "deleted"), Done("topic b", {"topic": "b"}, problem=missing)]
    assert Output().results(done) == NOT_FOUND
    assert capsys.readouterr() == ("topic a: deleted\n", "kaspar: topic b: does not exist\n")
    assert Output().results([*done, Done("topic c", {"topic": "c"}, problem=KasparError("no"))]) == FAILED
    assert Output().results(done[:1]) == 0
    capsys.readouterr()
    assert Output(Format.JSON).results(done) == NOT_FOUND
    assert json.loads(capsys.readouterr().out)[1] == {"topic": "b", "done": False, "error": "does not exist"}


@pytest.mark.parametrize(
    ("problem", "code", "words"),
    [
        (Refused(ErrorCode.GROUP_ID_NOT_FOUND, "The group is gone."), NOT_FOUND, "The group is gone."),
        (Refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "no"), NOT_PERMITTED, "kaspar acl add"),
        (Refused(ErrorCode.SASL_AUTHENTICATION_FAILED, "wrong"), NOT_PERMITTED, "refused the log-in: wrong"),
        (Refused(ErrorCode.NON_EMPTY_GROUP, "NON_EMPTY_GROUP"), FAILED, "stop its members first"),
        (Refused(ErrorCode.INVALID_CONFIG, "Bad value."), FAILED, "Bad value"),
        (Refused(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured."), FAILED, "kaspar up --secure"),
        (NoBroker("no broker responds"), NO_BROKER, "no broker responds"),
        (PermissionError(13, "Permission denied", "/etc/x"), FAILED, "/etc/x: Permission denied"),
        (OSError("odd"), FAILED, "odd"),
    ],
)
def test_failure_has_an_exit_code_and_says_what_to_do(problem: KasparError | OSError, code: int, words: str) -> None:
    failure = explain(problem)
    assert failure.exit_code == code
    assert words in failure.sentence


def test_different_failures_are_just_failures() -> None:
    assert worst([]) == 0
    assert worst([NOT_FOUND, NOT_FOUND]) == NOT_FOUND
    assert worst([NOT_FOUND, NOT_PERMITTED]) == FAILED


def test_values_are_shown_as_people_read_them() -> None:
    assert [shown(value) for value in (None, "", True, [1, 2], (), 5)] == ["-", "-", "yes", "1,2", "-", "5"]
    assert [size(value) for value in (0, 1023, 1024, 5 * 1024**3, 3 * 1024**4, None)] == [
        "0B",
        "1023B",
        "1.0KiB",
        "5.0GiB",
        "3.0TiB",
        "-",
    ]


def test_sizes_and_counts_in_sentences() -> None:
    sizes = [decimal_size(size) for size in (0, 999, 1500, 2_500_000, 7_000_000_000)]
    assert sizes == ["0 B", "999 B", "1.5 kB", "2.5 MB", "7.0 GB"]
    assert [counted(1, "topic"), counted(2, "topic"), counted(0, "process", "processes")] == [
        "1 topic",
        "2 topics",
        "0 processes",
    ]
