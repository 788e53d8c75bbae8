"""How long a process that ends again and again waits for its next start."""

from kaspar.supervisor.back_off import LONGEST_DELAY_S, STABLE_AFTER_S, BackOff


def test_delay_doubles_up_to_a_limit() -> None:
    back_off = BackOff()
    delays = [back_off.next_delay_s(lived_s=0.1) for _ in range(9)]
    assert delays == [0.5, 1, 2, 4, 8, 16, 30, 30, 30]
    assert delays[-1] == LONGEST_DELAY_S


def test_long_life_starts_the_delays_again() -> None:
    back_off = BackOff()
    for _ in range(5):
        back_off.next_delay_s(lived_s=0.1)
    assert back_off.next_delay_s(lived_s=STABLE_AFTER_S) == 0.5
    assert back_off.next_delay_s(lived_s=0.1) == 1
