"""The registry against a simple model: any sequence of requests gets the responses that the model expects.

After every step, replaying the records that were written into a fresh state gives an equal one; so does replaying only
those that compaction keeps, with its tombstones and without, and replaying some of them into a fork.
"""

from dataclasses import dataclass, replace
from typing import Final

from hypothesis import settings, strategies
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kaspar.registry.interfaces import LogRecord
from kaspar.registry.state import State
from tests.unit.registry.memory import MemoryRegistry, Response

# Avro's primitive types, and which other types each can read.
READS: Final = {
    "int": {"int"},
    "long": {"int", "long"},
    "float": {"int", "long", "float"},
    "string": {"string", "bytes"},
    "boolean": {"boolean"},
}
SUBJECTS: Final = ("a", "b", ":.x:a")
LEVELS: Final = ("NONE", "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FULL_TRANSITIVE")

subjects = strategies.sampled_from(SUBJECTS)
schemas = strategies.sampled_from(sorted(READS))
versions = strategies.integers(1, 4)
levels = strategies.sampled_from(LEVELS)
modes = strategies.sampled_from(("READWRITE", "READONLY", "IMPORT"))
ids = strategies.integers(1, 6)


@dataclass(frozen=True)
class Version:
    schema: str
    id: int
    deleted: bool = False


def context_of(subject: str) -> str:
    return ".x" if subject.startswith(":.x:") else "."


class Model:
    """Lists of versions and nothing derived."""

    def __init__(self) -> None:
        self.versions: dict[str, dict[int, Version]] = {subject: {} for subject in SUBJECTS}
        self.max_id = {".": 0, ".x": 0}
        self.levels: dict[str, str] = {}
        self.modes: dict[str, str] = {}

    def live(self, subject: str) -> list[int]:
        return [number for number, version in sorted(self.versions[subject].items()) if not version.deleted]

    def all_of(self, context: str) -> list[Version]:
        return [
            each for subject in SUBJECTS if context_of(subject) == context for each in self.versions[subject].values()
        ]

    def mode(self, subject: str) -> str:
        return self.modes.get(subject, "READWRITE")

    def compatible(self, subject: str, schema: str) -> bool:
        level = self.levels.get(subject, "BACKWARD")
        earlier = [self.versions[subject][number].schema for number in self.live(subject)]
        if not level.endswith("_TRANSITIVE"):
            earlier = earlier[-1:]
        reads_old = all(each in READS[schema] for each in earlier) or level.startswith(("FORWARD", "NONE"))
        reads_new = all(schema in READS[each] for each in earlier) or level.startswith(("BACKWARD", "NONE"))
        return reads_old and reads_new

    def existing(self, subject: str, schema: str) -> int | None:
        found = [number for number in self.live(subject) if self.versions[subject][number].schema == schema]
        return found[-1] if found else None

    def put(self, subject: str, number: int, version: Version) -> None:
        self.versions[subject][number] = version
        context = context_of(subject)
        self.max_id[context] = max(self.max_id[context], version.id)


class RegistryMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.registry = MemoryRegistry()
        self.model = Model()

    def teardown(self) -> None:
        self.registry.__exit__(None, None, None)

    def expect(self, response: Response, code: int) -> None:
        found = 0 if response.status == 200 else response.json["error_code"]
        assert found == code, response.text

    @rule(subject=subjects, schema=schemas)
    def register(self, subject: str, schema: str) -> None:
        model = self.model
        response = self.registry.try_register(subject, f'"{schema}"')
        existing = model.existing(subject, schema)
        if existing is not None:
            assert response.json["version"] == existing
            return
        if model.mode(subject) != "READWRITE":
            self.expect(response, 42205)
            return
        if not model.compatible(subject, schema):
            self.expect(response, 409)
            return
        self.expect(response, 0)
        own = [each.id for each in model.versions[subject].values() if each.schema == schema]
        others = [each.id for each in model.all_of(context_of(subject)) if each.schema == schema]
        new_id = model.max_id[context_of(subject)] + 1
        stored = response.json
        assert stored["id"] in ({*own, *others} or {new_id})
        number = max(model.versions[subject], default=0) + 1
        assert stored["version"] == number
        gone = [
            each for each, version in model.versions[subject].items() if version.deleted and version.id == stored["id"]
        ]
        for each in gone:
            del model.versions[subject][each]
        model.put(subject, number, Version(schema, stored["id"]))

    @rule(subject=subjects, schema=schemas, number=versions, schema_id=ids)
    def import_schema(self, subject: str, schema: str, number: int, schema_id: int) -> None:
        model = self.model
        if model.mode(subject) != "IMPORT":
            return
        response = self.registry.try_register(subject, f'"{schema}"', id=schema_id, version=number)
        holders = {each.schema for each in model.all_of(context_of(subject)) if each.id == schema_id}
        if holders - {schema}:
            self.expect(response, 42205)
            return
        self.expect(response, 0)
        for each, version in list(model.versions[subject].items()):
            if version.deleted and version.id == schema_id and each < number:
                del model.versions[subject][each]
        model.put(subject, number, Version(schema, schema_id))

    @rule(subject=subjects, number=versions, permanent=strategies.booleans())
    def delete_version(self, subject: str, number: int, permanent: bool) -> None:
        versions_ = self.model.versions[subject]
        target = f"/subjects/{subject}/versions/{number}?permanent={str(permanent).lower()}"
        response = self.registry.request("DELETE", target)
        version = versions_.get(number)
        if version is None:
            self.expect(response, 40402 if versions_ else 40401)
        elif version.deleted and not permanent:
            self.expect(response, 40406)
        elif self.model.mode(subject) == "READONLY":
            self.expect(response, 42205)
        elif permanent and not version.deleted:
            self.expect(response, 40407)
        else:
            self.expect(response, 0)
            if permanent:
                del versions_[number]
                self.forget_settings(subject)
            else:
                versions_[number] = replace(version, deleted=True)

    @rule(subject=subjects, permanent=strategies.booleans())
    def delete_subject(self, subject: str, permanent: bool) -> None:
        versions_ = self.model.versions[subject]
        response = self.registry.request("DELETE", f"/subjects/{subject}?permanent={str(permanent).lower()}")
        live = self.model.live(subject)
        if not versions_:
            self.expect(response, 40401)
        elif not permanent and not live:
            self.expect(response, 40404)
        elif self.model.mode(subject) == "READONLY":
            self.expect(response, 42205)
        elif permanent and live:
            self.expect(response, 40405)
        else:
            assert response.json == (sorted(versions_) if permanent else live)
            if permanent:
                versions_.clear()
                self.forget_settings(subject)
            else:
                self.model.versions[subject] = {
                    number: replace(version, deleted=True) for number, version in versions_.items()
                }

    def forget_settings(self, subject: str) -> None:
        if not self.model.versions[subject]:
            self.model.levels.pop(subject, None)
            self.model.modes.pop(subject, None)

    @rule(subject=subjects, level=levels)
    def change_level(self, subject: str, level: str) -> None:
        response = self.registry.request("PUT", f"/config/{subject}", {"compatibility": level})
        if self.model.mode(subject) == "READONLY":
            self.expect(response, 42205)
        else:
            self.expect(response, 0)
            self.model.levels[subject] = level

    @rule(subject=subjects)
    def reset_level(self, subject: str) -> None:
        response = self.registry.request("DELETE", f"/config/{subject}")
        if subject not in self.model.levels:
            self.expect(response, 40401)
        elif self.model.mode(subject) == "READONLY":
            self.expect(response, 42205)
        else:
            assert response.json == {"compatibilityLevel": self.model.levels.pop(subject)}

    @rule(subject=subjects, mode=modes)
    def change_mode(self, subject: str, mode: str) -> None:
        model = self.model
        response = self.registry.request("PUT", f"/mode/{subject}", {"mode": mode})
        if mode == "IMPORT" and model.mode(subject) != "IMPORT":
            if model.live(subject):
                self.expect(response, 42205)
                return
            model.versions[subject].clear()
        self.expect(response, 0)
        model.modes[subject] = mode

    @invariant()
    def lists_are_those_of_the_model(self) -> None:
        for subject in SUBJECTS:
            expected = [
                -number if version.deleted else number
                for number, version in sorted(self.model.versions[subject].items())
            ]
            response = self.registry.request("GET", f"/subjects/{subject}/versions?deletedAsNegative=true")
            assert (response.json if response.status == 200 else []) == expected
        assert self.registry.get("/subjects") == sorted(subject for subject in SUBJECTS if self.model.live(subject))

    @invariant()
    def ids_lead_to_their_schemas(self) -> None:
        for subject in SUBJECTS:
            for version in self.model.versions[subject].values():
                prefix = ":.x:" if context_of(subject) == ".x" else ""
                response = self.registry.get(f"/schemas/ids/{version.id}?subject={prefix}")
                assert response["schema"] == f'"{version.schema}"'

    @invariant()
    def replay_gives_the_same_state(self) -> None:
        records = list(enumerate(self.registry.log.records))
        assert _replayed(records) == self.registry.state
        last = {key: offset for offset, (key, _) in records}
        compacted = [(offset, record) for offset, record in records if last[record[0]] == offset]
        assert _replayed(compacted) == self.registry.state
        without_tombstones = [(offset, record) for offset, record in compacted if record[1] is not None]
        assert _replayed(without_tombstones) == self.registry.state

    @invariant()
    def fork_and_origin_do_not_see_each_other(self) -> None:
        records = list(enumerate(self.registry.log.records))
        before, after = records[: len(records) // 2], records[len(records) // 2 :]
        origin = _replayed(before)
        fork = origin.fork()
        assert _replayed(after, fork) == self.registry.state
        assert origin == _replayed(before)
        second_fork = origin.fork()
        assert _replayed(after, origin) == self.registry.state
        assert second_fork == _replayed(before)


def _replayed(records: list[tuple[int, LogRecord]], state: State | None = None) -> State:
    state = State() if state is None else state
    for offset, (key, value) in records:
        state.replay(key, value, offset, 1_000 + offset)
    return state


TestRegistry = RegistryMachine.TestCase
TestRegistry.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
