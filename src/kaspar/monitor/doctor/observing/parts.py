"""Records parts of an observation that fail as missing; the other parts are still read."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from kaspar.base.errors import ErrorCode, KasparError, Refused
from kaspar.client.admin.session import Admin
from kaspar.monitor.doctor.observation import Missing

_Result = TypeVar("_Result")


class Parts:
    """The parts that could not be read in one observation, and the brokers that did not respond."""

    def __init__(self, silent: set[int] | None = None) -> None:
        """`silent` are the brokers that have not responded earlier in the same look."""
        self.missing: list[Missing] = []
        self.silent: set[int] = set() if silent is None else silent

    def read(self, what: str, read: Callable[[], _Result]) -> _Result | None:
        """Read a part. Returns None if it is missing."""
        try:
            return read()
        except (KasparError, OSError) as problem:
            self.missing.append(Missing(what, sentence_of(problem)))
            return None

    def read_each(self, what: str, brokers: Iterable[int], read: Callable[[int], _Result]) -> dict[int, _Result]:
        """Read a part from each broker that responds. A broker that did not respond once is skipped for the rest of
        this look, because each attempt would take its timeout."""
        found = {}
        for broker_id in brokers:
            if broker_id in self.silent:
                continue
            try:
                found[broker_id] = read(broker_id)
            except (KasparError, OSError) as problem:
                if _is_silence(problem):
                    self.silent.add(broker_id)
                self.missing.append(Missing(f"{what} of broker {broker_id}", sentence_of(problem)))
        return found


def _is_silence(problem: KasparError | OSError) -> bool:
    if isinstance(problem, Refused):
        return problem.code is ErrorCode.REQUEST_TIMED_OUT
    return isinstance(problem, OSError)


def sentence_of(problem: KasparError | OSError) -> str:
    match problem:
        case Refused() if problem.code.name.endswith("AUTHORIZATION_FAILED"):
            resource = problem.code.name.removesuffix("_AUTHORIZATION_FAILED").lower().replace("_", " ")
            return f"not permitted: an ACL for the {resource} is missing"
        case Refused():
            return problem.message.rstrip(".") or problem.code.name
        case OSError():
            return problem.strerror or str(problem) or type(problem).__name__
    return str(problem)


@contextmanager
def bounded(admin: Admin, timeout_s: float) -> Iterator[None]:
    """During a look, no call waits for a broker for longer than `timeout_s`, and `report_unreachable` is not called,
    because an unreachable broker becomes part of the observation."""
    before = admin.api_timeout_s, admin.client.timeout_s, admin.report_unreachable
    admin.api_timeout_s = min(timeout_s, before[0])
    admin.client.timeout_s = min(timeout_s, before[1])
    admin.report_unreachable = lambda error: None
    try:
        yield
    finally:
        admin.api_timeout_s, admin.client.timeout_s, admin.report_unreachable = before
