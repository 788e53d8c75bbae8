"""Brokers and the cluster as a whole: which are up, and whether they agree."""

from collections.abc import Iterator
from typing import Final

from kaspar.base.sentences import some
from kaspar.monitor.doctor.check import check
from kaspar.monitor.doctor.finding import Fault, Severity
from kaspar.monitor.doctor.looks import Looks
from kaspar.monitor.doctor.observation import Observation

CLOCK_LIMIT_MS: Final = 2000


@check(
    "no-controller",
    Severity.PROBLEM,
    title="The cluster has no controller",
    why="Until there is one, no leader can be elected, no topic created and no setting changed.",
    remedy="Start the brokers that can be the controller, and the ZooKeeper servers or controller quorum that they "
    "need.",
)
def no_controller(looks: Looks) -> Iterator[Fault]:
    """The previous observation must also have seen no controller, because an ordinary election takes a moment."""
    if all(each.brokers and each.controller_id < 0 for each in looks.observations[-2:]):
        yield Fault("cluster", "No broker is the controller.", looks.access.start_broker())


@check(
    "broker-down",
    Severity.PROBLEM,
    title="A broker is down",
    why="Its replicas fall behind; partitions whose replicas are all on stopped brokers cannot be read or written.",
    remedy="Start it. If it is gone for good, move its replicas to others with kafka-reassign-partitions.",
)
def broker_down(looks: Looks) -> Iterator[Fault]:
    last = looks.last
    for broker_id, replicas in sorted(replicas_on_missing(last).items()):
        state = "is registered and fenced" if broker_id in last.brokers else "is not in the cluster"
        detail = f"Broker {broker_id} {state}, and {replicas} replicas are on it."
        yield Fault(f"broker {broker_id}", detail, looks.access.start_broker())


def replicas_on_missing(observation: Observation) -> dict[int, int]:
    """The number of replicas on each broker that is fenced or gone, including fenced brokers without replicas."""
    if not observation.brokers:
        return {}
    live = set(observation.live_brokers)
    found = {broker_id: 0 for broker_id in observation.brokers if broker_id not in live}
    for _, partition in observation.partitions():
        for broker_id in partition.replicas:
            if broker_id not in live:
                found[broker_id] = found.get(broker_id, 0) + 1
    return found


@check(
    "broker-silent",
    Severity.PROBLEM,
    title="A broker does not respond",
    why="It still counts as alive, so clients wait for it and its partitions are not failed over.",
    remedy="Check its log and its machine; restart it if it hangs.",
)
def broker_silent(looks: Looks) -> Iterator[Fault]:
    for broker in looks.last.brokers.values():
        if not broker.is_responding and not broker.is_fenced:
            detail = f"The cluster lists {broker.host}:{broker.port}, but requests to it fail or time out."
            yield Fault(f"broker {broker.broker_id}", detail, looks.access.start_broker())


@check(
    "mixed-versions",
    Severity.WARNING,
    title="Brokers have different versions",
    why="Normal during a rolling upgrade. Otherwise clients and features are limited to what the oldest broker "
    "supports.",
    remedy="Finish the upgrade: restart the older brokers with the new version.",
)
def mixed_versions(looks: Looks) -> Iterator[Fault]:
    served = {broker_id: (each.apis, each.supported) for broker_id, each in looks.last.features.items()}
    kinds: list[tuple[object, list[int]]] = []
    for broker_id, what in sorted(served.items()):
        for known, ids in kinds:
            if known == what:
                ids.append(broker_id)
                break
        else:
            kinds.append((what, [broker_id]))
    if len(kinds) > 1:
        alike = "; ".join(f"brokers {some(ids)}" if len(ids) > 1 else f"broker {ids[0]}" for _, ids in kinds)
        detail = f"The brokers serve different APIs or feature levels: {alike}."
        yield Fault("cluster", detail, looks.access.kafka("kafka-broker-api-versions"))


@check(
    "feature-levels-behind",
    Severity.NOTE,
    title="Feature levels are behind what all brokers support",
    why="After the brokers are upgraded, new features stay off until their levels are finalized.",
    remedy="Raise the levels once a downgrade is no longer needed.",
)
def feature_levels_behind(looks: Looks) -> Iterator[Fault]:
    features = list(looks.last.features.values())
    if not features or not any(each.finalized for each in features):
        return
    names = set.intersection(*(set(each.supported) for each in features))
    common = {name: min(each.supported[name] for each in features) for name in names}
    finalized = next(each.finalized for each in features if each.finalized)
    behind = {name: level for name, level in sorted(common.items()) if finalized.get(name, 0) < level}
    if behind:
        levels = some(f"{name} is at {finalized.get(name, 0)} of {level}" for name, level in behind.items())
        words = [word for name, level in behind.items() for word in ("--feature", f"{name}={level}")]
        yield Fault("cluster", f"{levels}.", looks.access.kafka("kafka-features", "upgrade", *words))


@check(
    "clocks-apart",
    Severity.WARNING,
    title="Clocks are not synchronised",
    why="Time-based retention, transaction timeouts and record timestamps are off by the same amount.",
    remedy="Synchronise the clocks of all machines with chrony or systemd-timesyncd.",
)
def clocks_apart(looks: Looks) -> Iterator[Fault]:
    """With one or two brokers, clocks are compared with this machine's; otherwise with the median of all brokers'
    clocks, so that the wrong clock of a laptop is not blamed on every broker."""
    clocks = looks.last.clocks
    if not clocks:
        return
    offsets = sorted(each.ahead_ms for each in clocks.values())
    middle = offsets[len(offsets) // 2] if len(offsets) > 2 else 0
    for broker_id, clock in sorted(clocks.items()):
        apart_ms = clock.ahead_ms - middle
        if abs(apart_ms) > CLOCK_LIMIT_MS + clock.uncertainty_ms:
            yield Fault(
                f"broker {broker_id}",
                f"Its clock is {abs(apart_ms) / 1000:.1f} s {'ahead of' if apart_ms > 0 else 'behind'} "
                f"{'the other brokers' if len(offsets) > 2 else 'the clock of this machine'}, by {clock.source} "
                f"(known to {clock.uncertainty_ms / 1000:.1f} s).",
            )
    if abs(middle) > CLOCK_LIMIT_MS + max(each.uncertainty_ms for each in clocks.values()):
        side = "behind" if middle > 0 else "ahead of"
        yield Fault("this machine", f"Its clock is {abs(middle) / 1000:.1f} s {side} those of the brokers.")
