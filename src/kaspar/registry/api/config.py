"""/config: the compatibility level and the other settings for new schemas, of the registry, a context or a subject."""

from typing import Any, Final

from msgspec import UNSET

from kaspar.registry.api.bodies import ConfigRequest, ConfigResponse, ConfigUpdateResponse
from kaspar.registry.api.endpoint import DEFAULT_TO_GLOBAL, Access, Call, Endpoint, WriteTexts
from kaspar.registry.entities import InvalidRules
from kaspar.registry.errors import config_not_found, invalid_compatibility_level, invalid_rule_set, invalid_subject
from kaspar.registry.names import is_valid_subject
from kaspar.schemas.levels import CompatibilityLevel

_TAG: Final = "Config"


async def _get(call: Call) -> ConfigResponse:
    return ConfigResponse.of(call.service.config_in_scope(None))


async def _get_subject(call: Call) -> ConfigResponse:
    subject = call.subject
    if call.flag("defaultToGlobal"):
        return ConfigResponse.of(call.service.config_in_scope(subject))
    config = call.service.state.config(subject)
    if config is None:
        raise config_not_found(subject)
    return ConfigResponse.of(config)


def _changes(request: ConfigRequest) -> dict[str, Any]:
    """The fields of the stored config that the request sets or resets."""
    changes = {name: value for name in request.__struct_fields__ if (value := getattr(request, name)) is not UNSET}
    if "compatibility" in changes:
        changes["compatibility_level"] = _level(changes.pop("compatibility"))
    for name in ("default_rule_set", "override_rule_set"):
        if changes.get(name) is not None:
            try:
                changes[name].check()
            except InvalidRules as problem:
                raise invalid_rule_set(str(problem)) from None
    return changes


def _level(name: str | None) -> str | None:
    if name is None:
        return None
    level = CompatibilityLevel.of(name)
    if level is None:
        raise invalid_compatibility_level()
    return level.value


async def _put(call: Call) -> ConfigUpdateResponse:
    changes = _changes(call.decoded(ConfigRequest))
    return ConfigUpdateResponse.of(await call.service.change_config(None, changes))


async def _put_subject(call: Call) -> ConfigUpdateResponse:
    changes = _changes(call.decoded(ConfigRequest))
    if not is_valid_subject(call.path["subject"]):
        raise invalid_subject(call.path["subject"])
    return ConfigUpdateResponse.of(await call.service.change_config(call.subject, changes))


async def _delete(call: Call) -> ConfigResponse:
    before = call.service.config_in_scope(None)
    await call.service.delete_config(None)
    return ConfigResponse.of(before)


async def _delete_subject(call: Call) -> ConfigResponse:
    deleted = await call.service.delete_config(call.subject)
    assert deleted is not None
    return ConfigResponse.of(deleted)


_UPDATE: Final = WriteTexts(
    "Failed to update compatibility level",
    "Failed to update compatibility level",
    "Error while forwarding update config request to the leader",
    "Failed to update compatibility level",
)
_DELETE: Final = WriteTexts(
    "Failed to delete compatibility level",
    "Failed to delete compatibility level",
    "Error while forwarding delete config request to the leader",
    "Failed to delete compatibility level",
)

ENDPOINTS: Final = (
    Endpoint("GET", "/config", _get, "The config of the registry", _TAG, Access.READ_CONFIG, ConfigResponse),
    Endpoint(
        "PUT",
        "/config",
        _put,
        "Change the config of the registry",
        _TAG,
        Access.WRITE_CONFIG,
        ConfigUpdateResponse,
        body=ConfigRequest,
        errors=(42203, 42205, 42210),
        writes=_UPDATE,
    ),
    Endpoint(
        "DELETE",
        "/config",
        _delete,
        "Reset the config of the registry",
        _TAG,
        Access.WRITE_CONFIG,
        ConfigResponse,
        errors=(42205,),
        writes=_DELETE,
    ),
    Endpoint(
        "GET",
        "/config/{subject}",
        _get_subject,
        "The config of a subject or context",
        _TAG,
        Access.READ_SUBJECT,
        ConfigResponse,
        parameters=(DEFAULT_TO_GLOBAL,),
        errors=(40408,),
    ),
    Endpoint(
        "PUT",
        "/config/{subject}",
        _put_subject,
        "Change the config of a subject or context",
        _TAG,
        Access.WRITE_SUBJECT,
        ConfigUpdateResponse,
        body=ConfigRequest,
        errors=(42203, 42205, 42208, 42210),
        writes=_UPDATE,
    ),
    Endpoint(
        "DELETE",
        "/config/{subject}",
        _delete_subject,
        "Reset the config of a subject or context",
        _TAG,
        Access.WRITE_SUBJECT,
        ConfigResponse,
        errors=(40401, 42205),
        writes=_DELETE,
    ),
)
