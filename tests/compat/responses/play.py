"""Plays a scenario at one version on one broker and returns the transcript of what the broker said."""

import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from tests.compat.responses.api import Api
from tests.compat.responses.messages import Plain, UnreadableResponseError, decode_response, encode_request
from tests.compat.responses.placeholders import Context, resolve
from tests.compat.responses.scenario import Ask, Eventually, NewTopic, Raw, RawStream, Scenario, Step
from tests.compat.responses.wire import ClosedError, Connection, SilentError

SETTLE_SECONDS = 20.0
GUEST_ADDRESS = "127.0.0.2"
_POLL_SECONDS = 0.005
CLOSED = "the broker closed the connection"
SILENT = "the broker did not respond and kept the connection"
_EMPTY = Scenario("nothing", Api.API_VERSIONS, ())
NO_RESPONSE = "the broker sent no response and went on with the next request"


class Peer(Protocol):
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...


@dataclass
class Transcript:
    """For each step its name and what came back: plain data, or one of the texts above."""

    context: Context
    entries: list[tuple[str, Plain]] = field(default_factory=list)


class SetupError(AssertionError):
    """The broker did not make the scenario's topics, or a change did not spread in time."""


class Stage:
    """One broker, and what scenarios share on it between their versions."""

    def __init__(self, peer: Peer, brokers: Mapping[int, Peer] | None = None) -> None:
        """`brokers`: those of a cluster, by id, for steps that name one."""
        self.peer = peer
        self.brokers = dict(brokers or {})
        self._shared: dict[str, Context] = {}

    def wait_ready(self) -> None:
        """A broker that responds may still have to fetch its first block of producer ids, and makes the topics of its
        coordinators when they are first looked for.
        """
        _Player(self, _EMPTY, 0, Context("ready")).await_coordinators()

    def play(self, scenario: Scenario, version: int, *, again: bool = False) -> Transcript:
        """`again`: it was played before, so its topics get other names."""
        if not scenario.shared:
            name = f"{scenario.slug}.v{version}{'.again' if again else ''}".replace("v-", "v_")
            return _Player(self, scenario, version, Context(name)).play(prepare=True)
        prepared = scenario.slug in self._shared
        context = self._shared.setdefault(scenario.slug, Context(f"{scenario.slug}.all"))
        return _Player(self, scenario, version, context).play(prepare=not prepared)


class _Player:
    def __init__(self, stage: Stage, scenario: Scenario, version: int, context: Context) -> None:
        self._stage = stage
        self._scenario = scenario
        self._version = version
        self._connections: dict[tuple[int | None, bool], Connection] = {}
        self._way: tuple[int | None, bool] = (None, False)  # to which broker, and whether as a guest
        self._correlation_id = 0
        self.context = context

    def play(self, *, prepare: bool) -> Transcript:
        transcript = Transcript(self.context)
        try:
            if prepare:
                for topic in self._scenario.topics:
                    self._make_topic(topic)
                for step in self._scenario.given:
                    self._play_step(step)
            for number, step in enumerate(self._scenario.steps, 1):
                name, said = self._play_step(step)
                transcript.entries.append((f"step {number}: {name}", said))
        finally:
            self._drop_connections()
        return transcript

    def _play_step(self, step: Step) -> tuple[str, Plain]:
        match step:
            case Ask():
                return step.api.title, self._ask(step)
            case Eventually():
                return step.api.title, self._eventually(step)
            case Raw():
                return f"{step.api.title} by hand", self._raw(step)
            case RawStream():
                return "bytes", self._raw_stream(step)

    def _ask(self, step: Ask) -> Plain:
        version = self._version if step.version is None else step.version
        self._correlation_id += 1
        body = resolve(step.body, self.context)
        assert isinstance(body, Mapping)
        payload = encode_request(step.api, version, self._correlation_id, body)
        payload = payload[: len(payload) - step.cut] + step.extra
        self._way = (step.broker, step.guest)
        if not step.has_response:
            return self._send_without_response(payload)
        said = self._exchange(payload, step.api, version, patience=step.patience)
        for name, path in step.learn.items():
            self.context.learnt[name] = _at(said, path)
        return said

    def _send_without_response(self, payload: bytes) -> Plain:
        """Responses come in order, so the response to the next request shows whether this one was left out."""
        probe_id = self._correlation_id = self._correlation_id + 1
        try:
            self._connected().send(payload)
            self._connected().send(encode_request(Api.API_VERSIONS, 0, probe_id, {}))
            first = int.from_bytes(self._connected().receive()[:4], "big", signed=True)
            return NO_RESPONSE if first == probe_id else f"a response to request {first}"
        except ClosedError:
            self._drop_connection()
            return CLOSED

    def _eventually(self, step: Eventually) -> Plain:
        said = self._until(step.api, step.body, step.path, step.value, step.broker)
        return said if step.compare else f"{step.path} became {step.value!r}"

    def _until(
        self, api: Api, body: Mapping[str, object], path: str, value: object, broker: int | None = None
    ) -> Plain:
        deadline = time.monotonic() + SETTLE_SECONDS
        expected = resolve(value, self.context)
        while True:
            said = self._ask(Ask(api, body, version=api.last, broker=broker))
            if _at(said, path) == expected:
                return said
            if time.monotonic() > deadline or not isinstance(said, dict):
                raise SetupError(f"{path} did not become {expected!r} in {SETTLE_SECONDS} s: {said}")
            time.sleep(_POLL_SECONDS)

    def _raw(self, step: Raw) -> Plain:
        return self._exchange(step.payload, step.api, step.response_version, check_correlation=False)

    def _raw_stream(self, step: RawStream) -> Plain:
        try:
            self._connected().send_raw(step.data)
            return {"a response": self._connected().receive().hex()}
        except ClosedError:
            return CLOSED
        except SilentError:
            return SILENT
        finally:
            self._drop_connection()

    def _exchange(
        self,
        payload: bytes,
        api: Api,
        version: int,
        *,
        check_correlation: bool = True,
        patience: float | None = None,
    ) -> Plain:
        try:
            self._connected().send(payload)
            response = self._connected().receive(patience)
        except ClosedError:
            self._drop_connection()
            return CLOSED
        except SilentError:
            self._drop_connection()
            return SILENT
        try:
            correlation_id, body = decode_response(api, version, response)
        except UnreadableResponseError as error:
            return {"unreadable": str(error)}
        if check_correlation and correlation_id != self._correlation_id:
            return {"unreadable": f"the response to request {self._correlation_id} names request {correlation_id}"}
        return body

    def _make_topic(self, topic: NewTopic) -> None:
        """Create a topic and wait until every partition is served: a broker takes a moment to become its leader."""
        name = self.context.topic_name(topic.short)
        configs = [{"name": key, "value": value} for key, value in topic.configs.items()]
        assignments = [{"partition_index": n, "broker_ids": ids} for n, ids in enumerate(topic.assignments)]
        size = {"num_partitions": -1, "replication_factor": -1, "assignments": assignments}
        if not assignments:
            size = {"num_partitions": topic.partitions, "replication_factor": 1}
        created = {"name": name, "configs": configs, **size}
        said = self._ask(Ask(Api.CREATE_TOPICS, {"topics": [created], "timeout": 10_000}, version=7))
        if not isinstance(said, dict) or said["topics"][0]["error_code"] != "NONE":
            raise SetupError(f"topic {name} was not created: {said}")
        topic_id = said["topics"][0]["topic_id"]
        assert isinstance(topic_id, uuid.UUID), f"topic {name} has no id: {said}"
        self.context.topic_ids[topic.short] = topic_id
        if topic.assignments:
            self._await_replicas(name, topic.assignments)
        else:
            self._await_leaders(name, topic.partitions)

    def await_coordinators(self) -> None:
        body: dict[str, object] = {"transactional_id": None, "transaction_timeout": 60_000}
        groups = {"groups": [{"group_id": "ready", "topics": None}]}
        try:
            self._until(Api.INIT_PRODUCER_ID, body, "error_code", "NONE")
            for key_type in (0, 1):
                key: dict[str, object] = {"coordinator_keys": ["ready"], "key_type": key_type}
                self._until(Api.FIND_COORDINATOR, key, "coordinators.0.error_code", "NONE")
            self._until(Api.INIT_PRODUCER_ID, {**body, "transactional_id": "ready"}, "error_code", "NONE")
            self._until(Api.OFFSET_FETCH, groups, "groups.0.error_code", "NONE")
        finally:
            self._drop_connection()

    def _await_leaders(self, name: str, partitions: int) -> None:
        wanted = [{"partition_index": number, "timestamp": -1} for number in range(partitions)]
        request = {"replica_id": -1, "topics": [{"name": name, "partitions": wanted}]}
        last = partitions - 1
        self._until(Api.METADATA, {"topics": [{"name": name}]}, f"topics.0.partitions.{last}.error_code", "NONE")
        for number in range(partitions):
            self._until(Api.LIST_OFFSETS, request, f"topics.0.partitions.{number}.error_code", "NONE")

    def _await_replicas(self, name: str, assignments: Sequence[Sequence[int]]) -> None:
        """Wait until each leader is served by its broker, and every broker that runs knows the topic."""
        for partition, (leader, *_) in enumerate(assignments):
            if leader in self._stage.brokers:
                wanted = {"name": name, "partitions": [{"partition_index": partition, "timestamp": -1}]}
                request = {"replica_id": -1, "topics": [wanted]}
                self._until(Api.LIST_OFFSETS, request, "topics.0.partitions.0.error_code", "NONE", leader)
        for broker in self._stage.brokers:
            named = {"topics": [{"name": name}]}
            self._until(Api.METADATA, named, "topics.0.partitions.length", len(assignments), broker)

    def _connected(self) -> Connection:
        if self._way not in self._connections:
            broker, guest = self._way
            peer = self._stage.peer if broker is None else self._stage.brokers[broker]
            self._connections[self._way] = Connection(peer.host, peer.port, GUEST_ADDRESS if guest else None)
        return self._connections[self._way]

    def _drop_connection(self) -> None:
        connection = self._connections.pop(self._way, None)
        if connection is not None:
            connection.close()

    def _drop_connections(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()


def _at(tree: Plain, path: str) -> Any:
    """The value at a path like topics.0.error_code, or None where the tree ends before it."""
    for part in path.split("."):
        if isinstance(tree, list) and part == "length":
            return len(tree)
        if isinstance(tree, list) and int(part) < len(tree):
            tree = tree[int(part)]
        elif isinstance(tree, dict) and part in tree:
            tree = tree[part]
        else:
            return None
    return tree
