"""Client quotas."""

from urllib.parse import parse_qsl, urlencode

from kaspar.metadata.layout.json_values import encode
from kaspar.metadata.layout.store_paths import CLIENT_QUOTAS
from kaspar.metadata.store import Create, Delete, Operation, Put
from kaspar.quotas.entities import CLIENT_ID, IP, USER, Limits, QuotaEntity


def quota_path(entity: QuotaEntity) -> str:
    """The path of an entity's quotas. Names of users and clients may contain any character; the default's is empty."""
    return f"{CLIENT_QUOTAS}/{urlencode([(kind, name or '') for kind, name in entity.parts()])}"


def quota_entity(node_name: str) -> QuotaEntity:
    names = dict(parse_qsl(node_name, keep_blank_values=True, strict_parsing=True))
    return QuotaEntity(names.get(USER), names.get(CLIENT_ID), names.get(IP))


def quota_change(entity: QuotaEntity, old: Limits | None, new: Limits) -> list[Operation]:
    """The operations that change the quotas of an entity. An entity without quotas has no node."""
    path = quota_path(entity)
    if not old:
        return [Create(path, encode(dict(new)))] if new else []
    if not new:
        return [Delete(path)]
    return [Put(path, encode(dict(new)))] if dict(old) != dict(new) else []
