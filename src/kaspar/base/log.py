"""The structured log: a sentence, then named values. One line for people on a terminal, one JSON object for machines.

log = get_log(__name__)
log.info("cut a torn tail", partition=partition, bytes=size)

Many values come from clients: a line break in a client id must not look like another line of the log, nor must an
escape sequence reach a terminal. So control characters are written as escapes wherever they come from.
"""

import datetime
import json
import logging
import re
import sys
import textwrap
from pathlib import Path
from typing import Any, TextIO

from kaspar.base.log_writer import LogWriter

_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_UNPRINTABLE_IN_LINES = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class StructuredLog:
    """A thin face on the standard library's logger: what is switched off costs one look-up."""

    __slots__ = ("logger",)

    def __init__(self, logger: logging.Logger) -> None:
        self.logger = logger

    def debug(self, sentence: str, **values: object) -> None:
        self._log(logging.DEBUG, sentence, values)

    def info(self, sentence: str, **values: object) -> None:
        self._log(logging.INFO, sentence, values)

    def warning(self, sentence: str, **values: object) -> None:
        self._log(logging.WARNING, sentence, values)

    def error(self, sentence: str, **values: object) -> None:
        self._log(logging.ERROR, sentence, values)

    def exception(self, sentence: str, **values: object) -> None:
        """An error with the traceback of the exception being handled."""
        self._log(logging.ERROR, sentence, values, exc_info=True)

    def _log(self, level: int, sentence: str, values: dict[str, object], *, exc_info: bool = False) -> None:
        if self.logger.isEnabledFor(level):
            self.logger.log(level, sentence, exc_info=exc_info, extra={"values": values}, stacklevel=3)


def get_log(module: str) -> StructuredLog:
    return StructuredLog(logging.getLogger(module))


class PeopleFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        time = datetime.datetime.fromtimestamp(record.created).strftime("%Y-%m-%d %H:%M:%S,%f")[:-3]
        values = getattr(record, "values", {})
        named = "".join(f" {name}={value}" for name, value in values.items())
        line = f"[{time}] {record.levelname} {_UNPRINTABLE.sub(_escape, record.getMessage() + named)} ({record.name})"
        if record.exc_info:
            # Indented, for what an exception says may have line breaks that are not ours.
            trace = _UNPRINTABLE_IN_LINES.sub(_escape, self.formatException(record.exc_info))
            line += "\n" + textwrap.indent(trace, "  ")
        return line


def _escape(found: re.Match[str]) -> str:
    return found.group().encode("unicode_escape").decode()


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        time = datetime.datetime.fromtimestamp(record.created, datetime.UTC).isoformat(timespec="milliseconds")
        entry: dict[str, object] = {
            "time": time,
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        entry.update(getattr(record, "values", {}))
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str)


def configure(*, level: str = "INFO", stream: TextIO | None = None, file: Path | None = None) -> None:
    """Send the log to a terminal (for people) and, where given, to a file (JSON lines). Called once, by a command."""
    handlers: list[logging.StreamHandler[Any]] = [logging.StreamHandler(stream or sys.stderr)]
    handlers[0].setFormatter(PeopleFormatter())
    if file is not None:
        handlers.append(logging.FileHandler(file))
        handlers[1].setFormatter(JsonFormatter())
    root = logging.getLogger("kaspar")
    root.handlers = [LogWriter(handler) for handler in handlers]
    root.setLevel(level)
    root.propagate = False


def flush() -> None:
    """Wait until the lines so far are written, before something else is written to the same place."""
    for handler in logging.getLogger("kaspar").handlers:
        handler.flush()
