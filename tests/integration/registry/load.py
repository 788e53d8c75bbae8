"""Registrations by several clients while instances die, and what must hold of them afterwards."""

import random
import threading
from collections import defaultdict
from collections.abc import Sequence
from types import TracebackType
from typing import Self

import httpx

from tests.integration.registry.instances import HEADERS, Registry, leader_of, record_schema, wait_until

_SHARED_SUBJECTS = 5
_OWN_SHARE = 0.6
_CLIENTS = 4


class RegistrationLoad:
    """Each client registers schemas of its own, and versions of subjects that all share, at any instance, and retries
    at any until it gets a response that is final."""

    def __init__(self, instances: Sequence[Registry], rng: random.Random) -> None:
        self._instances = list(instances)
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self.acknowledged: list[tuple[str, str, int]] = []
        """Subject, schema and id."""
        self.failed: list[str] = []
        """Responses that are neither a success nor an error that a client retries."""
        self._clients = [
            threading.Thread(target=self._register, args=(number, random.Random(rng.random())))
            for number in range(_CLIENTS)
        ]

    def _register(self, client: int, rng: random.Random) -> None:
        with httpx.Client(headers=HEADERS, timeout=0.7, trust_env=False) as http:
            number = 0
            while not self._ended.is_set():
                number += 1
                if rng.random() < _OWN_SHARE:
                    subject, schema = f"own-{client}-{number}", record_schema(f"Own{client}_{number}")
                else:
                    # Several clients race for the same schema and for the next version of the same subject.
                    subject = f"shared-{rng.randrange(_SHARED_SUBJECTS)}"
                    schema = record_schema(f"Shared{rng.randrange(number * 2)}")
                self._register_one(http, rng, subject, schema)

    def _register_one(self, http: httpx.Client, rng: random.Random, subject: str, schema: str) -> None:
        while not self._ended.is_set():
            instance = rng.choice(self._instances)
            try:
                response = http.post(f"{instance.url}/subjects/{subject}/versions", json={"schema": schema})
            except httpx.TransportError:
                self._ended.wait(0.02)
                continue
            with self._lock:
                if response.status_code == 200:
                    self.acknowledged.append((subject, schema, response.json()["id"]))
                    return
                if response.status_code < 500:
                    self.failed.append(response.text)
                    return
            self._ended.wait(0.02)

    def wait_for_more(self, registrations: int) -> None:
        """Until so many more were acknowledged."""
        wanted = len(self.acknowledged) + registrations
        wait_until(lambda: len(self.acknowledged) >= wanted, f"{registrations} more registrations")

    def __enter__(self) -> Self:
        for client in self._clients:
            client.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended.set()
        for client in self._clients:
            client.join()


def check(load: RegistrationLoad, instances: Sequence[Registry]) -> None:
    """No acknowledged registration is lost, no id is given to two schemas, no schema has two ids, and the versions of a
    subject have no holes; and all instances agree."""
    assert load.failed == []
    assert load.acknowledged
    leader = leader_of(instances)
    everything = leader.get("/schemas")
    wait_until(lambda: all(each.get("/schemas") == everything for each in instances), "all have what the leader has")
    schemas_of_id: dict[int, set[str]] = defaultdict(set)
    ids_of_schema: dict[str, set[int]] = defaultdict(set)
    versions: dict[str, list[int]] = defaultdict(list)
    schemas_of_subject: dict[str, list[str]] = defaultdict(list)
    for entry in everything:
        schemas_of_id[entry["id"]].add(entry["schema"])
        ids_of_schema[entry["schema"]].add(entry["id"])
        versions[entry["subject"]].append(entry["version"])
        schemas_of_subject[entry["subject"]].append(entry["schema"])
    for subject, schema, schema_id in load.acknowledged:
        schemas_of_id[schema_id].add(schema)
        ids_of_schema[schema].add(schema_id)
        assert schema in schemas_of_subject[subject]
    assert {schema_id: found for schema_id, found in schemas_of_id.items() if len(found) > 1} == {}
    assert {schema: found for schema, found in ids_of_schema.items() if len(found) > 1} == {}
    for subject, numbers in versions.items():
        assert sorted(numbers) == list(range(1, len(numbers) + 1)), subject
        assert len(set(schemas_of_subject[subject])) == len(numbers), subject
    for instance in instances:
        for schema_id in {schema_id for _, _, schema_id in load.acknowledged}:
            (schema,) = schemas_of_id[schema_id]
            assert instance.get(f"/schemas/ids/{schema_id}")["schema"] == schema
