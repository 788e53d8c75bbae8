"""The sentence that says why a pipeline has failed."""

from kaspar.base.errors import KasparError
from kaspar.pipelines.reasons import LONGEST, reason_of


class SparkError(Exception):
    """As those of PySpark, which need a JVM."""

    __module__ = "pyspark.errors.exceptions.captured"


IN_FOREACH_BATCH = """\
[STREAM_FAILED] Query [id = 8a1c, runId = 5c2b] terminated with exception: [FOREACH_BATCH_USER_FUNCTION_ERROR] An \
error occurred in the user provided function in foreach batch sink. Reason: An exception was raised by the Python \
Proxy. Return Message: Traceback (most recent call last):
  File "/lib/py4j/clientserver.py", line 617, in _call_proxy
    return_value = getattr(self.pool[obj_id], method)(*params)
  File "app.py", line 7, in fail
    raise ValueError("the rate of XXX is missing")
ValueError: the rate of XXX is missing
\tat py4j.Protocol.getReturnValue(Protocol.java:476)
SQLSTATE: XXKST
=== Streaming Query ===
Identifier: [id = 8a1c, runId = 5c2b]
"""
OURS = """\
[STREAM_FAILED] Query [id = 8a1c, runId = 5c2b] terminated with exception: Job aborted due to stage failure
Traceback (most recent call last):
  File "x.py", line 1, in f
kaspar.base.errors.KasparError: topic clicks does not exist SQLSTATE: 38000
"""
PLAIN = "[STREAM_FAILED] Query [id = 8a1c] terminated with exception: no space left SQLSTATE: XXKST\n=== Query ==="


def test_our_own_errors_are_sentences() -> None:
    assert reason_of(KasparError("the topic x does not exist")) == "the topic x does not exist"


def test_other_errors_have_their_kind_and_first_line() -> None:
    assert reason_of(ValueError("one\ntwo")) == "ValueError: one"
    assert reason_of(KeyError()) == "KeyError"


def test_error_in_a_function_that_spark_called_is_that_error() -> None:
    assert reason_of(SparkError(IN_FOREACH_BATCH)) == "ValueError: the rate of XXX is missing"


def test_our_error_in_sparks_text_is_found() -> None:
    assert reason_of(SparkError(OURS)) == "topic clicks does not exist"


def test_sparks_own_error_is_its_first_line_without_ids() -> None:
    assert reason_of(SparkError(PLAIN)) == "no space left"


def test_reason_is_short_and_has_no_control_characters() -> None:
    reason = reason_of(KasparError("a\x1b[31m\n" + "x" * 1000))
    assert reason.startswith("a [31m x")
    assert len(reason) == LONGEST


def test_error_whose_jvm_has_ended_has_its_kind() -> None:
    class Unreadable(SparkError):
        def __str__(self) -> str:
            raise ConnectionError

    assert reason_of(Unreadable()) == "Unreadable"
