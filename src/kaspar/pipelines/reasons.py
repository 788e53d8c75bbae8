"""Why a pipeline has failed, as one sentence."""

import re
from typing import Final

from kaspar.base.errors import KasparError
from kaspar.spark.watching.figures import message_in

LONGEST: Final = 500
_PYTHON_ERROR: Final = re.compile(r"^(?:\w+\.)*(\w*(?:Error|Exception|Interrupt|Exit)): *(.+)$", re.MULTILINE)
_TRACEBACK: Final = "Traceback (most recent call last)"
_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")
_TERMINATED: Final = re.compile(r"^\[\w+\] Query .*? terminated with exception: ")


def reason_of(error: BaseException) -> str:
    """The text of our own errors; the exception of a Python function that failed in Spark; otherwise the first line."""
    text = _text_of(error)
    if isinstance(error, KasparError):
        reason = text
    elif text and type(error).__module__.partition(".")[0] in ("pyspark", "py4j"):
        reason = _in_spark(text)
    else:
        first = text.strip().partition("\n")[0]
        reason = f"{type(error).__name__}: {first}" if first else type(error).__name__
    reason = _UNPRINTABLE.sub(" ", reason).strip()  # it may quote a record, and is printed to terminals
    return reason if len(reason) <= LONGEST else reason[: LONGEST - 3] + "..."


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # PySpark reads the text from the JVM, which may have ended
        return ""


def _in_spark(text: str) -> str:
    message = message_in(text)
    if message not in text.strip().partition("\n")[0]:
        return message  # one of our own errors, from further down in the text
    if _TRACEBACK in text and (raised := _PYTHON_ERROR.findall(text[text.rindex(_TRACEBACK) :])):
        kind, sentence = raised[0]
        return f"{kind}: {sentence}"
    return _TERMINATED.sub("", message)
