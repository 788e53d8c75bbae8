"""The timer wheel beside a plain dict of times: whatever is set, moved and taken back, the same keys are due."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kaspar.broker.timers import TICK_MS, TimerWheel

KEYS = st.integers(0, 30)
DELAYS_MS = st.one_of(st.integers(0, 50), st.integers(0, 100_000), st.integers(0, 10**11))


def tick_up(at_ms: int) -> int:
    return -(-at_ms // TICK_MS)


class Wheel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now_ms = 1_234
        self.wheel: TimerWheel[int] = TimerWheel(self.now_ms)
        self.times: dict[int, int] = {}

    @rule(key=KEYS, delay_ms=DELAYS_MS)
    def set(self, key: int, delay_ms: int) -> None:
        self.times[key] = self.now_ms + delay_ms
        self.wheel.set(key, self.now_ms + delay_ms)

    @rule(key=KEYS)
    def cancel(self, key: int) -> None:
        assert self.wheel.cancel(key) == (self.times.pop(key, None) is not None)

    @rule(delay_ms=DELAYS_MS, at_most=st.none() | st.integers(1, 5))
    def time_passes(self, delay_ms: int, at_most: int | None) -> None:
        self.now_ms += delay_ms
        due = {key for key, at_ms in self.times.items() if tick_up(at_ms) <= self.now_ms // TICK_MS}
        handed_out = self.wheel.due(self.now_ms, at_most)
        assert len(handed_out) == min(len(due), len(due) if at_most is None else at_most)
        assert set(handed_out) <= due
        for key in handed_out:
            del self.times[key]

    @invariant()
    def nothing_is_forgotten(self) -> None:
        assert len(self.wheel) == len(self.times)
        next_ms = self.wheel.next_ms()
        assert (next_ms is None) == (not self.times)
        if next_ms is not None:
            assert next_ms <= max(TICK_MS * tick_up(min(self.times.values())), self.now_ms)


TestTimerWheel = Wheel.TestCase
