"""The log: one line for each entry, whatever its values hold."""

import json
import logging

from kaspar.base.log import JsonFormatter, TextFormatter

FORGED = "a\n[2026-01-01 00:00:00,000] ERROR the disk is gone (kaspar.storage)\r\x1b[31m\x85\u2028\ud800"


def record(**values: object) -> logging.LogRecord:
    made = logging.LogRecord("kaspar.test", logging.INFO, "file.py", 1, "a client connected", None, None)
    made.values = values
    return made


def test_control_characters_of_a_value_are_escaped() -> None:
    line = TextFormatter().format(record(client=FORGED, size=3))
    assert line.isprintable()
    assert line.endswith(
        r" INFO a client connected client=a\n[2026-01-01 00:00:00,000] ERROR the disk is gone (kaspar.storage)"
        r"\r\x1b[31m\x85\u2028\ud800 size=3 (kaspar.test)"
    )


def test_text_of_any_language_stays_as_it_is() -> None:
    assert "client=Zoë-北京 path=C:\\new" in TextFormatter().format(record(client="Zoë-北京", path="C:\\new"))


def test_message_of_an_exception_cannot_look_like_another_entry() -> None:
    try:
        raise ValueError(FORGED)
    except ValueError as problem:
        failed = record(client="a")
        failed.exc_info = (ValueError, problem, problem.__traceback__)
    first, *rest = TextFormatter().format(failed).split("\n")
    assert first.endswith("client=a (kaspar.test)")
    assert rest[0] == "  Traceback (most recent call last):"
    assert all(line.startswith("  ") and line.isprintable() for line in rest)


def test_a_json_entry_is_one_line_from_which_the_value_can_be_read() -> None:
    line = JsonFormatter().format(record(client=FORGED))
    assert line.isprintable()
    assert json.loads(line)["client"] == FORGED
