"""What `kaspar doctor` prints of a finding, and which cluster it looks at."""

import pytest

from kaspar.cli.doctor import finding_lines
from kaspar.cli.main import main
from kaspar.monitor.doctor.finding import Finding, Severity


def finding(detail: str, command: str | None = None, *, resource: str = "group billing") -> Finding:
    return Finding("group-behind", Severity.WARNING, "A group is falling behind", detail, resource, command)


def test_text_is_wrapped_and_commands_are_not() -> None:
    command = "kaspar topic alter " + " ".join(f"topic-{number}" for number in range(20)) + " --unset segment.ms"
    lines = "\n".join(finding_lines(finding("Its lag grew. " * 12, command))).splitlines()
    assert lines[0] == "  A group is falling behind: group billing (group-behind)"
    assert all(len(line) <= 80 and line.startswith("    ") for line in lines[1:-1])
    assert lines[-1] == f"    $ {command}"


def test_a_finding_without_a_command_has_no_such_line() -> None:
    assert finding_lines(finding("It is behind.")) == [
        "  A group is falling behind: group billing (group-behind)",
        "    It is behind.",
    ]


def test_names_that_others_chose_cannot_write_to_the_terminal() -> None:
    text = "\n".join(finding_lines(finding("a\x1b[2Jb", "kaspar group delete 'a\x1b[2Jb'", resource="group a\x1b[2Jb")))
    assert "\x1b" not in text
    assert text.count("a\\x1b[2Jb") == 3


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--metrics-url", "http://localhost:9308"), "--metrics-url is BROKER=URL"),
        (("--metrics-url", "1=file:///etc/passwd"), "--metrics-url is BROKER=URL"),
        (("--dir", "/nowhere/at/all"), "there is no cluster in /nowhere/at/all"),
        (("--seconds", "-1"), "--seconds"),
        (("--plan", "nonsense"), "--plan"),
    ],
)
def test_wrong_usage_is_refused_before_a_broker_is_asked(
    arguments: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", *arguments]) == 2
    assert sentence in capsys.readouterr().err
