"""What is used of gssapi, an extra that development installs do without: it has to be compiled."""

from collections.abc import Collection, Mapping, Sequence
from enum import IntEnum

from gssapi import exceptions as exceptions

class OID: ...

class MechType:
    kerberos: OID

class NameType:
    hostbased_service: OID
    kerberos_principal: OID

class RequirementFlag(IntEnum):
    mutual_authentication = 2
    integrity = 32
    anonymity = 64

class Name:
    def __init__(self, base: str, name_type: OID) -> None: ...
    def __bytes__(self) -> bytes: ...
    def canonicalize(self, mech: OID) -> Name: ...

class Credentials:
    def __init__(
        self, *, name: Name | None, usage: str, mechs: Sequence[OID], store: Mapping[str, str] | None
    ) -> None: ...

class _Message:
    message: bytes

class SecurityContext:
    __DEFER_STEP_ERRORS__: bool
    def __init__(
        self,
        *,
        usage: str,
        creds: Credentials,
        name: Name | None = None,
        mech: OID | None = None,
        flags: Sequence[RequirementFlag] | None = None,
    ) -> None: ...
    @property
    def complete(self) -> bool: ...
    @property
    def actual_flags(self) -> Collection[RequirementFlag]: ...
    @property
    def initiator_name(self) -> Name: ...
    def step(self, token: bytes | None = None) -> bytes | None: ...
    def wrap(self, message: bytes, encrypt: bool) -> _Message: ...
    def unwrap(self, message: bytes) -> _Message: ...
