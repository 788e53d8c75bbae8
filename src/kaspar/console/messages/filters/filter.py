"""A filter, ready to be applied to records."""

from kaspar.console.messages.filters.evaluating import MAX_STEPS, Evaluation, Fields, StepLimit
from kaspar.console.messages.filters.parsing import condition_of
from kaspar.console.messages.filters.tree import Node


class Filter:
    """A filter for records. Not thread-safe: it counts the records that it could not decide."""

    def __init__(self, text: str, *, now_ms: int, max_steps: int = MAX_STEPS) -> None:
        """`now_ms` is the value of `now`. An empty text lets every record pass. Raises FilterError."""
        self.text = text.strip()
        self.undecided = 0
        """The number of records that needed more than the allowed steps; they do not match."""
        self._condition: Node | None = condition_of(text) if self.text else None
        self._now_ms = now_ms
        self._max_steps = max_steps

    @property
    def passes_all(self) -> bool:
        return self._condition is None

    def matches(self, fields: Fields) -> bool:
        if self._condition is None:
            return True
        try:
            return Evaluation(fields, self._now_ms, self._max_steps).holds(self._condition)
        except (StepLimit, RecursionError):  # RecursionError for deeply nested values
            self.undecided += 1
            return False
