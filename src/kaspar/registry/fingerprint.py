"""The identity of a schema: an MD5 of its text, references, metadata and rules. As a UUID it is the schema's GUID.

It does not cover the format: a text that is both an Avro and a JSON schema has one GUID, and two ids.

It is the same, byte for byte, as Confluent's `Schema.updateHash`: registries with the same schema give it the same
GUID.
"""

import hashlib
import uuid
from collections.abc import Iterable
from typing import Protocol

from kaspar.registry.entities import Metadata, Rule, RuleSet, SchemaReference

_PRESENT = b"\x01"


class _Digest(Protocol):
    def update(self, data: bytes, /) -> None: ...


def fingerprint(
    text: str, references: Iterable[SchemaReference], metadata: Metadata | None, rule_set: RuleSet | None
) -> bytes:
    digest = hashlib.md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False)
    for reference in references:
        _add(digest, reference.name, reference.subject)
        digest.update(reference.version.to_bytes(4, "big", signed=True))
    if metadata is not None:
        digest.update(_PRESENT)
        _add_metadata(digest, metadata)
    if rule_set is not None:
        digest.update(_PRESENT)
        for rule in rule_set.rules():
            _add_rule(digest, rule)
        if rule_set.enable_at is not None:
            _add(digest, rule_set.enable_at)
    return digest.digest()


def guid_of(identity: bytes) -> str:
    return str(uuid.UUID(bytes=identity))


def _add_metadata(digest: _Digest, metadata: Metadata) -> None:
    for path, tags in (metadata.tags or {}).items():
        _add(digest, path, *tags)
    for name, value in (metadata.properties or {}).items():
        _add(digest, name, value)
    _add(digest, *(metadata.sensitive or ()))


def _add_rule(digest: _Digest, rule: Rule) -> None:
    _add(digest, rule.name, rule.doc, rule.kind, rule.mode, rule.type, *(rule.tags or ()))
    for name, value in (rule.params or {}).items():
        _add(digest, name, value)
    _add(digest, rule.expr, rule.on_success, rule.on_failure)
    if rule.disabled:
        digest.update(_PRESENT)


def _add(digest: _Digest, *texts: str | None) -> None:
    for text in texts:
        if text is not None:
            digest.update(text.encode("utf-8", "surrogatepass"))
