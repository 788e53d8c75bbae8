"""The schemas of the registry. Subjects may contain any characters, so they are parameters of the query string."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from typing import Any, Final, TypeVar

import msgspec

from kaspar.console.http.endpoint import Call, Endpoint, changes, reads
from kaspar.console.http.errors import CallFailed
from kaspar.console.problems import Unacceptable
from kaspar.console.registries import CallersRegistry
from kaspar.console.schemas.browsing import (
    SchemaVersion,
    SubjectView,
    compare_versions,
    read_compatibility,
    read_mode,
    read_subject,
    read_version,
    subject_names,
    subject_row,
)
from kaspar.console.schemas.changing import (
    NewSchema,
    Verdict,
    check,
    delete_subject,
    delete_version,
    register,
    set_compatibility,
    set_mode,
)
from kaspar.serialization.errors import RegistryError

_CLIENT_ERRORS: Final = range(400, 500)
_NOT_LOGGED_IN: Final = 401

_Result = TypeVar("_Result")


class ChangedLevel(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A new compatibility level or mode. Without a subject, it is that of the registry. Without a value, that of the
    subject is removed, so that the registry's applies."""

    subject: str | None = None
    value: str | None = None


async def _ask(call: Call, function: Callable[[CallersRegistry], _Result]) -> _Result:
    """Call the function in a thread, and return its result. Raises CallFailed for what the registry refuses."""
    registry = call.context.registries.of(call.identity)
    if registry is None:
        raise CallFailed(501, "No schema registry is configured: set schema.registry.url.")
    try:
        return await call.context.registries.call(partial(function, registry))
    except RegistryError as error:
        # Browsers would interpret 401 as one of the console itself.
        status = error.status if error.status in _CLIENT_ERRORS and error.status != _NOT_LOGGED_IN else 502
        raise CallFailed(
            status,
            str(error),
            f"SCHEMA_REGISTRY_{error.error_code}",
            is_refusal=error.status in _CLIENT_ERRORS,
        ) from None


async def _all(calls: Iterable[Coroutine[Any, Any, _Result]]) -> list[_Result]:
    """The results of all calls. If one fails, its exception is raised, and calls that have not begun are cancelled."""
    tasks = [asyncio.create_task(each) for each in calls]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


def _subject(call: Call) -> str:
    if not (subject := call.text("subject")):
        raise Unacceptable("The parameter subject is missing.")
    return subject


@reads("/api/schemas")
async def subjects(call: Call) -> dict[str, Any]:
    """A part of the list of subjects, with their latest versions."""
    with_deleted, search = call.flag("deleted"), call.text("search").casefold()
    offset, limit = call.number("offset", 0), call.limit()
    names = await call.context.reads.get(
        (call.identity, "subjects", with_deleted),
        lambda: _ask(call, lambda registry: subject_names(registry, with_deleted=with_deleted)),
    )
    found = [(name, is_deleted) for name, is_deleted in names if search in name.casefold()]
    rows = await _all(
        _ask(call, partial(subject_row, subject=name, is_deleted=is_deleted))
        for name, is_deleted in found[offset : offset + limit]
    )
    compatibility, mode = await _ask(call, lambda registry: (read_compatibility(registry), read_mode(registry)))
    return {
        "total": len(found),
        "offset": offset,
        "subjects": rows,
        "compatibility": compatibility,
        "mode": mode,
        "urls": call.context.registries.urls,
    }


@reads("/api/schemas/subject")
async def subject(call: Call) -> SubjectView:
    name = _subject(call)
    return await _ask(call, lambda registry: read_subject(registry, name))


@reads("/api/schemas/version")
async def version(call: Call) -> SchemaVersion:
    name, number = _subject(call), call.number("version", 1, least=1)
    return await _ask(call, lambda registry: read_version(registry, name, number))


@reads("/api/schemas/diff")
async def difference(call: Call) -> dict[str, Any]:
    name, old, new = _subject(call), call.number("from", 1, least=1), call.number("to", 1, least=1)
    return {"lines": await _ask(call, lambda registry: compare_versions(registry, name, old, new))}


async def checked(call: Call) -> Verdict:
    """Check a schema, which changes nothing and is not in the audit log. It is a POST because a schema needs a body."""
    new = await call.body(NewSchema)
    return await _ask(call, lambda registry: check(registry, new))


@changes("POST", "/api/schemas/versions", action="register schema", resource="schema registry")
async def registered(call: Call) -> dict[str, Any]:
    new = await call.body(NewSchema)
    call.note(f"subject {new.subject}")
    found = await _ask(call, lambda registry: register(registry, new))
    call.note(f"version {found['version']}, id {found['id']}")
    return found


@changes("DELETE", "/api/schemas/version", action="delete schema version", resource="schema registry")
async def deleted_version(call: Call) -> None:
    name, number, permanent = _subject(call), call.number("version", 0, least=1), call.flag("permanent")
    call.note(f"subject {name}, version {number}{', permanently' if permanent else ''}")
    await _ask(call, lambda registry: delete_version(registry, name, number, permanent=permanent))


@changes("DELETE", "/api/schemas/subject", action="delete schema subject", resource="schema registry")
async def deleted_subject(call: Call) -> None:
    name, permanent = _subject(call), call.flag("permanent")
    call.note(f"subject {name}{', permanently' if permanent else ''}")
    await _ask(call, lambda registry: delete_subject(registry, name, permanent=permanent))


@changes("PUT", "/api/schemas/compatibility", action="set compatibility", resource="schema registry")
async def changed_compatibility(call: Call) -> None:
    level = await call.body(ChangedLevel)
    call.note(f"{_whose(level)}: {level.value or 'default'}")
    await _ask(call, lambda registry: set_compatibility(registry, level.subject, level.value))


@changes("PUT", "/api/schemas/mode", action="set mode", resource="schema registry")
async def changed_mode(call: Call) -> None:
    level = await call.body(ChangedLevel)
    call.note(f"{_whose(level)}: {level.value or 'default'}")
    await _ask(call, lambda registry: set_mode(registry, level.subject, level.value))


def _whose(level: ChangedLevel) -> str:
    return "all subjects" if level.subject is None else f"subject {level.subject}"


ENDPOINTS = (
    subjects,
    subject,
    version,
    difference,
    Endpoint("POST", "/api/schemas/check", checked),
    registered,
    deleted_version,
    deleted_subject,
    changed_compatibility,
    changed_mode,
)
