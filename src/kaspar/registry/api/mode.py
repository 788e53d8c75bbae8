"""/mode: whether the registry, a context or a subject is writable, and how."""

from http import HTTPStatus
from typing import Final

from kaspar.registry.api.bodies import ModeRequest, ModeResponse
from kaspar.registry.api.endpoint import (
    DEFAULT_TO_GLOBAL,
    Access,
    Call,
    Endpoint,
    WriteTexts,
)
from kaspar.registry.decisions.settings import subjects_with_mode
from kaspar.registry.errors import http_error, invalid_mode, invalid_subject, mode_not_found
from kaspar.registry.names import is_valid_subject
from kaspar.registry.records import MODES, Mode
from kaspar.web.openapi import Parameter, ParameterKind

_TAG: Final = "Mode"
_RECURSIVE: Final = Parameter("recursive", ParameterKind.FLAG, "Also the modes of the subjects of the context")
_FORCE: Final = Parameter("force", ParameterKind.FLAG, "Change to IMPORT even if there are schemas")


async def _get(call: Call) -> ModeResponse:
    return ModeResponse(call.service.state.mode_in_scope(None))


async def _get_subject(call: Call) -> ModeResponse:
    subject, state = call.subject, call.service.state
    mode = state.mode_in_scope(subject) if call.flag("defaultToGlobal") else state.mode(subject)
    if mode is None:
        raise mode_not_found(subject)
    return ModeResponse(mode)


def _mode(call: Call) -> Mode:
    name = (call.decoded(ModeRequest).mode or "").upper()
    mode = next((mode for mode in MODES if mode == name), None)
    if mode is None:
        raise invalid_mode()
    return mode


async def _put(call: Call) -> ModeResponse:
    return ModeResponse(await call.service.change_mode(None, _mode(call), force=call.flag("force")))


async def _put_subject(call: Call) -> ModeResponse:
    if not is_valid_subject(call.path["subject"]):
        raise invalid_subject(call.path["subject"])
    return ModeResponse(await call.service.change_mode(call.subject, _mode(call), force=call.flag("force")))


async def _delete(call: Call) -> ModeResponse:
    before = call.service.state.mode_in_scope(None)
    await call.service.delete_mode(None, recursive=_is_recursive(call, None))
    return ModeResponse(before)


async def _delete_subject(call: Call) -> ModeResponse:
    before = call.service.state.mode_in_scope(call.subject)
    deleted = await call.service.delete_mode(call.subject, recursive=_is_recursive(call, call.subject))
    return ModeResponse(deleted or before)


def _is_recursive(call: Call, scope: str | None) -> bool:
    """Whether modes of subjects are deleted too. Raises RegistryError unless the caller may write all these
    subjects."""
    if not call.flag("recursive"):
        return False
    if not all(call.may_write(subject) for subject in subjects_with_mode(call.service.state, scope)):
        raise http_error(HTTPStatus.FORBIDDEN, "Forbidden")
    return True


_UPDATE: Final = WriteTexts(
    "Failed to update mode",
    "Failed to update mode",
    "Error while forwarding update mode request to the leader",
    "Failed to update mode",
)
_DELETE: Final = WriteTexts(
    "Failed to delete mode",
    "Failed to delete mode",
    "Error while forwarding delete mode request to the leader",
    "Failed to delete mode",
)

ENDPOINTS: Final = (
    Endpoint("GET", "/mode", _get, "The mode of the registry", _TAG, Access.READ_CONFIG, ModeResponse),
    Endpoint(
        "PUT",
        "/mode",
        _put,
        "Change the mode of the registry",
        _TAG,
        Access.WRITE_CONFIG,
        ModeResponse,
        parameters=(_FORCE,),
        body=ModeRequest,
        errors=(42204, 42205),
        writes=_UPDATE,
    ),
    Endpoint(
        "DELETE",
        "/mode",
        _delete,
        "Reset the mode of the registry",
        _TAG,
        Access.WRITE_CONFIG,
        ModeResponse,
        parameters=(_RECURSIVE,),
        errors=(42205,),
        writes=_DELETE,
    ),
    Endpoint(
        "GET",
        "/mode/{subject}",
        _get_subject,
        "The mode of a subject or context",
        _TAG,
        Access.READ_SUBJECT,
        ModeResponse,
        parameters=(DEFAULT_TO_GLOBAL,),
        errors=(40409,),
    ),
    Endpoint(
        "PUT",
        "/mode/{subject}",
        _put_subject,
        "Change the mode of a subject or context",
        _TAG,
        Access.WRITE_SUBJECT,
        ModeResponse,
        parameters=(_FORCE,),
        body=ModeRequest,
        errors=(42204, 42205, 42208),
        writes=_UPDATE,
    ),
    Endpoint(
        "DELETE",
        "/mode/{subject}",
        _delete_subject,
        "Reset the mode of a subject or context",
        _TAG,
        Access.WRITE_SUBJECT,
        ModeResponse,
        parameters=(_RECURSIVE,),
        errors=(40401, 42205),
        writes=_DELETE,
    ),
)
