"""The structured log: a sentence, then named values. As text on a terminal, as JSON lines in a file.

log = get_log(__name__)
log.info("cut a torn tail", partition=partition, bytes=size)

Many values come from clients: a line break in a client id must not look like another line of the log, and an escape
sequence must not reach a terminal. So all control characters are escaped.
"""

import datetime
import json
import logging
import re
import sys
import textwrap
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, TextIO

from kaspar.base.errors import KasparError
from kaspar.base.log_files import DEFAULT_ROTATION, RotatingFile, Rotation
from kaspar.base.log_writer import LogWriter

_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_UNPRINTABLE_IN_LINES = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class StructuredLog:
    """A thin wrapper around the standard library's logger. A disabled level costs one lookup."""

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
        """Log an error with the traceback of the exception being handled."""
        self._log(logging.ERROR, sentence, values, exc_info=True)

    def _log(self, level: int, sentence: str, values: dict[str, object], *, exc_info: bool = False) -> None:
        if self.logger.isEnabledFor(level):
            self.logger.log(level, sentence, exc_info=exc_info, extra={"values": values}, stacklevel=3)


def get_log(module: str) -> StructuredLog:
    return StructuredLog(logging.getLogger(module))


class TextFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        time = datetime.datetime.fromtimestamp(record.created).strftime("%Y-%m-%d %H:%M:%S,%f")[:-3]
        values = getattr(record, "values", {})
        named = "".join(f" {name}={value}" for name, value in values.items())
        line = f"[{time}] {record.levelname} {_UNPRINTABLE.sub(_escape, record.getMessage() + named)} ({record.name})"
        if record.exc_info:
            # Indented, since the message of an exception may contain line breaks.
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


def configure(
    *,
    level: str = "INFO",
    stream: TextIO | None = None,
    file: Path | None = None,
    text_file: Path | None = None,
    elsewhere: Collection[str] = (),
    rotation: Rotation = DEFAULT_ROTATION,
) -> None:
    """Send the log to a terminal as text and, if given, to `file` as JSON lines and to `text_file` as text, the latter
    without the loggers in `elsewhere`. Called once, by a command. Raises KasparError if a file cannot be written.
    """
    terminal = logging.StreamHandler(stream or sys.stderr)
    terminal.setFormatter(TextFormatter())
    handlers: list[logging.StreamHandler[Any]] = [terminal]
    if file is not None:
        handlers.append(_file_handler(file, JsonFormatter(), rotation))
    if text_file is not None:
        handlers.append(_file_handler(text_file, TextFormatter(), rotation))
    writers = [LogWriter(handler) for handler in handlers]
    if text_file is not None:
        starts = tuple(f"{name}." for name in elsewhere)
        writers[-1].addFilter(lambda record: not f"{record.name}.".startswith(starts))
    root = logging.getLogger("kaspar")
    root.handlers = [*writers]
    root.setLevel(level)
    root.propagate = False


def configure_apart(
    names: Iterable[str],
    file: Path,
    formatter: logging.Formatter | None = None,
    rotation: Rotation = DEFAULT_ROTATION,
    *,
    also_in_the_log: bool = False,
) -> None:
    """Send these loggers to a file of their own, as JSON lines unless a formatter is given. They are not written to the
    log as well unless `also_in_the_log`. Raises KasparError if the file cannot be written.
    """
    writer = LogWriter(_file_handler(file, formatter or JsonFormatter(), rotation))
    for name in names:
        logger = logging.getLogger(name)
        logger.handlers = [writer]
        logger.propagate = also_in_the_log
        _apart.add(name)


def _file_handler(file: Path, formatter: logging.Formatter, rotation: Rotation) -> "logging.StreamHandler[Any]":
    try:
        stream = RotatingFile(file, rotation)
    except OSError as problem:
        raise KasparError(f"the log file {file} cannot be written: {problem.strerror}") from problem
    handler: logging.StreamHandler[Any] = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    return handler


_apart: set[str] = set()


def flush() -> None:
    """Wait until all lines are written, before something else is written to the same terminal."""
    for name in ("kaspar", *_apart):
        for handler in logging.getLogger(name).handlers:
            handler.flush()
