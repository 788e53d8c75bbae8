"""/compatibility: checks whether a schema could be registered."""

from typing import Final

from kaspar.registry.api.bodies import CompatibilityResponse, RegisterRequest
from kaspar.registry.api.endpoint import NORMALIZE, VERBOSE, Access, Call, Endpoint
from kaspar.registry.errors import RegistryError, version_not_found
from kaspar.registry.references import LATEST
from kaspar.registry.state import StoredVersion

_TAG: Final = "Compatibility"
_INVALID_SCHEMA: Final = 42201


async def _check(call: Call, earlier: list[StoredVersion]) -> CompatibilityResponse:
    new = call.decoded(RegisterRequest).for_subject(call.subject)
    call.check_references(new)
    verbose = call.flag("verbose")
    try:
        messages = await call.service.incompatibilities(new, earlier, normalize=call.flag("normalize"))
    except RegistryError as problem:
        if not verbose or problem.code != _INVALID_SCHEMA:
            raise
        messages = [problem.message]
    return CompatibilityResponse(not messages, messages or None if verbose else None)


async def _with_version(call: Call) -> CompatibilityResponse:
    versions, number = call.service.state.versions(call.subject), call.version
    stored = versions.latest_live() if number == LATEST else versions.get(number)
    if stored is None or stored.deleted:
        if number != LATEST:
            raise version_not_found(number)
        return await _check(call, [])
    return await _check(call, [stored])


async def _with_all(call: Call) -> CompatibilityResponse:
    return await _check(call, list(call.service.state.versions(call.subject).newest_first()))


ENDPOINTS: Final = (
    Endpoint(
        "POST",
        "/compatibility/subjects/{subject}/versions",
        _with_all,
        "Whether a schema is compatible with a subject, by the rules of registration",
        _TAG,
        Access.READ_SUBJECT,
        CompatibilityResponse,
        parameters=(VERBOSE, NORMALIZE),
        body=RegisterRequest,
        errors=(42201,),
    ),
    Endpoint(
        "POST",
        "/compatibility/subjects/{subject}/versions/{version}",
        _with_version,
        "Whether a schema is compatible with one version of a subject",
        _TAG,
        Access.READ_SUBJECT,
        CompatibilityResponse,
        parameters=(VERBOSE, NORMALIZE),
        body=RegisterRequest,
        errors=(40402, 42201, 42202),
    ),
)
