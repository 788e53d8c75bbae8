"""How a scenario is run through every client, and what it has at hand.

    @for_every_client(Feature.COMMIT)
    def test_a_rule(stage: Stage) -> None: ...

is one test for each client that can do what the rule needs. Most of a scenario's time is waiting, so when the first of
these tests runs, the scenario is played for all chosen clients side by side, and each test reports its own client's
outcome. A stage keeps what its scenario opened and closes it.
"""

import contextlib
import itertools
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from tests.compat.clients.api import Client, ClientKind, Consumer, Feature, Producer, Protocol, Transformer
from tests.compat.clients.registry import CLIENTS, JAVA
from tests.compat.drivers.api import Driver, Record
from tests.compat.scenario import wait_for_leaders
from tests.peers.brokers import Brokers
from tests.peers.missing import unless_missing

_NO_VARIANT = ""

Scenario = Callable[..., None]  # takes a Stage, and the variant where it has several
Variants = Callable[[ClientKind], Sequence[str]]


def protocols(kind: ClientKind) -> Sequence[Protocol]:
    """The group protocols that a client knows."""
    return ("classic", "consumer") if kind.can([Feature.CONSUMER_PROTOCOL]) else ("classic",)


def for_every_client(*features: Feature, variants: Variants | None = None) -> Callable[[Scenario], Scenario]:
    """Makes a scenario a test for each client that has these features, and for each of its variants."""

    def decorate(scenario: Scenario) -> Scenario:
        cases = [
            (kind.name, variant)
            for kind in CLIENTS.values()
            if kind.can(features)
            for variant in (variants(kind) if variants is not None else [_NO_VARIANT])
        ]

        def test(broker: Brokers, crew: "Crew", client: str, variant: str) -> None:
            crew.outcome(scenario, client, variant)

        test.__name__ = scenario.__name__
        test.__module__ = scenario.__module__
        test.__doc__ = scenario.__doc__
        ids = [f"{client}-{variant}".removesuffix("-") for client, variant in cases]
        return pytest.mark.parametrize(("client", "variant"), cases, ids=ids)(test)

    return decorate


class Stage(contextlib.ExitStack):
    """One client in one scenario: topics, groups and ids of its own, and what it opened, closed at the end."""

    def __init__(self, crew: "Crew", kind: ClientKind) -> None:
        super().__init__()
        self.broker = crew.broker
        self.kind = kind
        self.reference = crew.reference
        self._crew = crew

    @property
    def client(self) -> Client:
        return self._crew.client(self.kind)

    @property
    def admin(self) -> Client:
        """A client that can describe groups in full."""
        return self._crew.client(JAVA)

    def spare(self, kind: ClientKind | None = None) -> Client:
        """Another process of the client, or of another one, for a scenario that kills it."""
        spare = unless_missing(lambda: Client(kind or self.kind, self.broker.bootstrap))
        self.callback(spare.close)
        self.callback(spare.kill)
        return spare

    def new_name(self, what: str) -> str:
        """A name that nobody else has."""
        return f"{what}-{self.kind.name}-{self._crew.next_number()}"

    def new_topic(self, *, partitions: int = 1, name: str | None = None) -> str:
        name = name or self.new_name("topic")
        self.reference.create_topic(name, partitions=partitions)
        wait_for_leaders(self.broker, name, range(partitions))
        return name

    def write(self, topic: str, *values: str, partition: int = 0, timestamp_ms: int | None = None) -> None:
        """With a plain producer."""
        records = [Record(value.encode(), timestamp_ms=timestamp_ms, partition=partition) for value in values]
        self.reference.produce(topic, records)

    def consumer(self, group: str, *topics: str, **options: Any) -> Consumer:
        consumer = self.client.consumer(group, *topics, **options)
        self.callback(consumer.close)
        return consumer

    def producer(self, transactional_id: str, **options: Any) -> Producer:
        producer = self.client.producer(transactional_id, **options)
        self.callback(producer.close)
        return producer

    def transformer(self, group: str, source: str, target: str, transactional_id: str, **options: Any) -> Transformer:
        transformer = self.client.transformer(group, source, target, transactional_id, **options)
        self.callback(transformer.close)
        return transformer


class Crew:
    """The clients of one test session, started when first asked for. `chosen` are the cases of each scenario."""

    def __init__(
        self, broker: Brokers, reference: Driver, chosen: Mapping[tuple[str, str], list[tuple[str, str]]]
    ) -> None:
        self.broker = broker
        self.reference = reference
        self._chosen = chosen
        self._clients: dict[str, Client] = {}
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._outcomes: dict[tuple[Scenario, str, str], Future[None]] = {}
        self._pool = ThreadPoolExecutor(len(CLIENTS))

    def next_number(self) -> int:
        return next(self._numbers)

    def client(self, kind: ClientKind) -> Client:
        with self._lock:
            if kind.name not in self._clients or not self._clients[kind.name].running:
                self._clients[kind.name] = unless_missing(lambda: Client(kind, self.broker.bootstrap))
            return self._clients[kind.name]

    def outcome(self, scenario: Scenario, client: str, variant: str) -> None:
        """Raises what the scenario raised. Begins it, for all chosen clients side by side, if that was not done yet."""
        if (scenario, client, variant) not in self._outcomes:
            self._begin(scenario, self._chosen[scenario.__module__, scenario.__name__])
        self._outcomes[scenario, client, variant].result()

    def close(self) -> None:
        for client in self._clients.values():
            client.close()
        self._pool.shutdown(cancel_futures=True)

    def _begin(self, scenario: Scenario, cases: Sequence[tuple[str, str]]) -> None:
        variants: dict[str, list[str]] = {}
        for client, variant in cases:
            variants.setdefault(client, []).append(variant)
            self._outcomes[scenario, client, variant] = Future()
        for client, chosen in variants.items():
            self._pool.submit(self._play, scenario, client, chosen)

    def _play(self, scenario: Scenario, client: str, variants: Sequence[str]) -> None:
        """One client's cases, one after the other."""
        for variant in variants:
            outcome = self._outcomes[scenario, client, variant]
            try:
                with Stage(self, CLIENTS[client]) as stage:
                    scenario(stage, *([] if variant == _NO_VARIANT else [variant]))
            except BaseException as error:  # also pytest's own, such as a skip: the test raises it again
                outcome.set_exception(error)
            else:
                outcome.set_result(None)
