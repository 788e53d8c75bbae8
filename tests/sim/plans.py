"""Which faults a seed has: drawn before the simulation begins, so that they can be shortened.

Half of the seeds draw faults at random, from some kinds only: what some of them do together is not hidden by the
others. The other half play two scenes, with few other faults. A scene is a short sequence of faults, drawn within
limits, that leads to one of the situations which the rules of replication are made for. Those are rare at random: each
takes several faults on the right brokers, within a second, in the right order.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from tests.sim.faults import AGAIN, BYSTANDERS, JOINING, PROPOSER, TARGETS, Fault, Kind, Moment

LONGEST_S: Final = 6.0


def plan(rng: random.Random, *, seconds: float) -> list[Fault]:
    """In the order of time."""
    faults = _scenes(rng, seconds) if rng.random() < 0.5 else _at_random(rng, seconds, most=12)
    return sorted((fault for fault in faults if fault.at < seconds), key=lambda fault: fault.at)


# -- at random ---------------------------------------------------------------------------------------------------------


def _at_random(rng: random.Random, seconds: float, *, most: int) -> list[Fault]:
    kinds = [kind for kind in Kind if rng.random() < 0.35] or [Kind.KILL]
    faults: list[Fault] = []
    for _ in range(rng.randint(1, most)):
        fault = _drawn(rng, kinds, at=rng.random() * seconds, target=rng.choice(TARGETS), number=rng.randrange(1 << 16))
        faults.append(fault)
        if rng.random() < 0.3:
            # Another one elsewhere, at the same moment.
            at, number = fault.at + rng.random() * 0.05, rng.randrange(1 << 16)
            companion = _drawn(rng, kinds, at=at, target=rng.choice(TARGETS), number=number)
            faults.append(replace(companion, waits_for=fault.waits_for))
        while rng.random() < 0.3:
            # Another one on the same broker, just as it recovers, or before that.
            ends_at = fault.at + fault.for_s
            just_after = ends_at + rng.random() * rng.choice((0.02, 0.2, 1.0))
            at = rng.choice((just_after, fault.at + fault.for_s * rng.random()))
            fault = _drawn(rng, kinds, at=at, target=AGAIN, number=fault.number)
            faults.append(fault)
    return faults


def _drawn(rng: random.Random, kinds: Sequence[Kind], *, at: float, target: str, number: int) -> Fault:
    for_s = rng.choice((0.1, 0.5, 2.0, LONGEST_S)) * (0.3 + 0.7 * rng.random())
    waits_for = Moment.CHANGE if rng.random() < 0.25 else None
    return Fault(round(at, 3), rng.choice(kinds), target, number, round(for_s, 3), waits_for)


# -- scenes ------------------------------------------------------------------------------------------------------------


def _scenes(rng: random.Random, seconds: float) -> list[Fault]:
    """One after the other; now and then with something else at the same time."""
    faults = _at_random(rng, seconds, most=2) if rng.random() < 0.3 else []
    for number in range(2):
        scene = Scene(rng, number * seconds / 2 + rng.random())
        rng.choice(SCENES)(scene)
        faults += scene.faults
    return faults


class Scene:
    """Collects the faults of one scene. Durations are given as limits, and drawn."""

    def __init__(self, rng: random.Random, at: float) -> None:
        self.rng = rng
        self.faults: list[Fault] = []
        self.partition = rng.randrange(2)
        self._at = at

    def then(
        self,
        kind: Kind,
        target: str,
        for_s: tuple[float, float] = (0.0, 0.0),
        *,
        after_s: tuple[float, float] = (0.0, 0.0),
        other: str = "",
        waits_for: Moment | None = None,
        number: int | None = None,
    ) -> None:
        """`after_s`: since the scene began, or since the moment that the fault waits for."""
        lasts, delay = round(self.rng.uniform(*for_s), 3), round(self.rng.uniform(*after_s), 3)
        number = self.rng.randrange(1 << 16) if number is None else number
        at, later = (self._at, delay) if waits_for is not None else (self._at + delay, 0.0)
        self.faults.append(Fault(round(at, 3), kind, target, number, lasts, waits_for, later, other))

    def a_follower_leaves(self) -> None:
        """It is not in sync any more, and will join again soon."""
        target, kind = f"follower {self.partition}", self.rng.choice((Kind.KILL, Kind.CUT))
        if kind is Kind.KILL:
            self.then(kind, target, (0.2, 2.0))
        else:
            self.then(kind, target, (2.0, 2.6), other=f"leader {self.partition}")


def _joins_after_power_loss(scene: Scene) -> None:
    """A replica loses records after its leader has asked for it to be in sync, and before the controller hears of that
    (KIP-903).
    """
    scene.a_follower_leaves()
    joining = Moment.JOINING
    scene.then(Kind.STALL, PROPOSER, (0.5, 1.5), other="controller", waits_for=joining, number=1)
    scene.then(Kind.CUT, JOINING, (1.0, 2.0), other=PROPOSER, waits_for=joining)
    scene.then(Kind.POWER, JOINING, (0.02, 0.2), after_s=(0.0, 0.1), waits_for=joining)


def _proposal_of_an_earlier_term(scene: Scene) -> None:
    """A leader asks for a replica to be in sync. When the controller hears of that, it leads no more, or is in another
    registration.
    """
    scene.a_follower_leaves()
    joining = Moment.JOINING
    if scene.rng.random() < 0.5:
        scene.then(Kind.STALL, PROPOSER, (1.0, 2.5), other="controller", waits_for=joining, number=1)
        scene.then(Kind.CUT, JOINING, (2.0, 3.0), other=PROPOSER, waits_for=joining)
        scene.then(Kind.PAUSE, "controller", (0.4, 0.9), waits_for=joining)
        scene.then(Kind.EXPIRE, PROPOSER, waits_for=joining)
    else:
        scene.then(Kind.STALL, PROPOSER, (0.8, 1.7), other="controller", waits_for=joining)
        scene.then(Kind.PAUSE, JOINING, (1.5, 1.95), waits_for=joining)
        for number in range(2):  # to both followers: one of them is in sync
            target = f"follower {scene.partition}"
            scene.then(Kind.MOVE, target, after_s=(0.01, 0.1), waits_for=joining, number=number)


def _joined_without_notice(scene: Scene) -> None:
    """A replica is in sync before its leader hears of that, and falls behind meanwhile (KIP-497)."""
    scene.a_follower_leaves()
    joining = Moment.JOINING
    scene.then(Kind.STALL, "controller", (0.8, 2.0), other=PROPOSER, waits_for=joining)
    if scene.rng.random() < 0.5:
        scene.then(Kind.PAUSE, JOINING, (0.8, 1.6), waits_for=joining)
    else:
        scene.then(Kind.CUT, JOINING, (0.8, 2.0), other=PROPOSER, waits_for=joining)


def _response_before_the_image(scene: Scene) -> None:
    """A leader hears of two changes that it has asked for before it gets the image that has the first."""
    leader, follower = BYSTANDERS if scene.rng.random() < 0.5 else BYSTANDERS[::-1]
    leaving = Moment.LEAVING
    scene.then(Kind.MOVE, leader, number=0)
    scene.then(Kind.PAUSE, follower, (1.5, 1.95), after_s=(0.2, 0.4))
    scene.then(
        Kind.STALL, "controller", (0.4, 1.2), other=leader, waits_for=leaving, number=scene.rng.randrange(0, 1 << 16, 2)
    )


def _leaders_change_while_apart(scene: Scene) -> None:
    """Two brokers that do not reach each other lead in turn, though both are in sync: each has records of an epoch that
    the other has not got (KIP-101, KIP-279).
    """
    first, second = BYSTANDERS if scene.rng.random() < 0.5 else BYSTANDERS[::-1]
    scene.then(Kind.MOVE, first, number=0)
    scene.then(Kind.CUT, first, (0.9, 1.8), after_s=(0.2, 0.3), other=second)
    at = 0.3
    for leader in (second, first, second)[: scene.rng.choice((1, 2, 2, 2, 3))]:
        at += scene.rng.uniform(0.15, 0.5)
        scene.then(Kind.MOVE, leader, after_s=(at, at), number=0)


def _response_of_an_earlier_epoch(scene: Scene) -> None:
    """A follower gets the response to a fetch when its partition has had another leader meanwhile."""
    leader, follower = BYSTANDERS if scene.rng.random() < 0.5 else BYSTANDERS[::-1]
    scene.then(Kind.MOVE, leader, number=0)
    scene.then(Kind.MOVE, leader, number=1)
    scene.then(Kind.STALL, leader, (0.8, 1.7), after_s=(0.3, 0.6), other=follower, number=1)
    at = scene.rng.uniform(0.6, 0.8)
    scene.then(Kind.MOVE, scene.rng.choice(("controller", "controller", follower)), after_s=(at, at), number=0)
    scene.then(Kind.MOVE, leader, after_s=(at + 0.1, at + 0.7), number=0)


def _power_fails_after_a_stop(scene: Scene) -> None:
    """All brokers stop in order, and then lose power."""
    lasts = scene.rng.uniform(4.2, 4.8)
    for number in range(4):
        scene.then(Kind.STOP, "any", (lasts, lasts), after_s=(0.0, 0.3), number=number)
        if scene.rng.random() < 0.8:
            scene.then(Kind.POWER, "any", (0.1, 1.0), after_s=(3.2, 3.8), number=number)


def _controller_that_was_replaced(scene: Scene) -> None:
    """A controller is taken for dead, and decides what happens next as its successor does."""
    scene.then(Kind.MISTAKEN, "controller", (0.02, 0.2))
    if scene.rng.random() < 0.3:
        scene.then(Kind.UNCERTAIN, "any", (0.5, 2.0), after_s=(0.0, 0.1))
    for _ in range(scene.rng.randint(1, 3)):
        kind = scene.rng.choice((Kind.KILL, Kind.EXPIRE, Kind.STOP, Kind.PAUSE, Kind.MOVE))
        scene.then(kind, scene.rng.choice(TARGETS), (0.1, 2.5), after_s=(0.02, 1.0))


def _restart_behind_the_controllers_back(scene: Scene) -> None:
    """A leader loses power and is back before the controller, which is behind, knows of it; it may then lose its first
    session, too.
    """
    if scene.rng.random() < 0.7:
        scene.then(Kind.CUT_ZOOKEEPER, "controller", (0.8, 1.9))
    else:
        scene.then(Kind.STALE, "any", (1.0, 2.0))
    kind = scene.rng.choice((Kind.POWER, Kind.POWER, Kind.KILL))
    scene.then(kind, f"leader {scene.partition}", (0.02, 0.3), after_s=(0.02, 0.3))
    if scene.rng.random() < 0.4:
        scene.then(Kind.EXPIRE, AGAIN, after_s=(0.5, 1.2), number=scene.faults[-1].number)


def _elections_with_unknown_outcome(scene: Scene) -> None:
    """The metadata store loses calls while leaders change."""
    scene.then(Kind.UNCERTAIN, "any", (1.0, 3.0))
    for _ in range(scene.rng.randint(1, 4)):
        kind = scene.rng.choice((Kind.KILL, Kind.MOVE, Kind.MOVE, Kind.EXPIRE))
        scene.then(kind, scene.rng.choice(TARGETS), (0.1, 1.0), after_s=(0.05, 2.0))


SCENES: Final[tuple[Callable[[Scene], None], ...]] = (
    _joins_after_power_loss,
    _proposal_of_an_earlier_term,
    _joined_without_notice,
    _response_before_the_image,
    _leaders_change_while_apart,
    _response_of_an_earlier_epoch,
    _power_fails_after_a_stop,
    _controller_that_was_replaced,
    _restart_behind_the_controllers_back,
    _elections_with_unknown_outcome,
)
