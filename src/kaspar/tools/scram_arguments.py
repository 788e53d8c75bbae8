"""`--add-scram` of kafka-storage: users that a new cluster has from the start, so that its first clients can log in.

SCRAM-SHA-256=[name=alice,password=alice-secret]
SCRAM-SHA-512=[name="bob",iterations=8192,salt="MWx2NHBkbnc0ZndxN25vdGN4bTB5Y2Iz",saltedpassword="..."]
"""

import base64
import binascii
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from kaspar.base.errors import KasparError
from kaspar.security.scram import (
    HASHES,
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    ScramCredential,
    credential_of,
    salted_password,
)
from kaspar.tools.java_numbers import parse_int


@dataclass(frozen=True, slots=True)
class NewScramUser:
    name: str
    mechanism: str
    credential: ScramCredential


def parse_scram_arguments(arguments: Sequence[str]) -> list[NewScramUser]:
    """Parse the arguments. Raises KasparError with the message of Kafka's command, which contains no secret."""
    return [_user(argument.strip()) for argument in arguments]


def _user(argument: str) -> NewScramUser:
    mechanism, equals, content = argument.partition("=")
    if not equals:
        raise KasparError("Failed to find equals sign in SCRAM argument")
    if mechanism not in HASHES:
        raise KasparError(f"The add-scram mechanism {mechanism} is not supported.")
    if not content.startswith("["):
        raise KasparError("Expected configuration string to start with [")
    if not content.endswith("]"):
        raise KasparError("Expected configuration string to end with ]")
    fields = dict(map(_field, content[1:-1].split(",")))
    name = fields.pop("name", None)
    if name is None:
        raise KasparError("You must supply 'name' to add-scram")
    return NewScramUser(name, mechanism, _credential(mechanism, fields))


def _field(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise KasparError("No equals sign found in SCRAM component")
    if len(value) >= 2 and value[0] == value[-1] == '"':
        value = value[1:-1]
    return key.strip(), value


def _credential(mechanism: str, fields: dict[str, str]) -> ScramCredential:
    given_salt, count = fields.pop("salt", None), fields.pop("iterations", str(MIN_ITERATIONS))
    password, salted = fields.pop("password", None), fields.pop("saltedpassword", None)
    if password is None and salted is None:
        raise KasparError("You must supply one of 'password' or 'saltedpassword' to add-scram")
    if password is None and given_salt is None:
        raise KasparError("You must supply 'salt' with 'saltedpassword' to add-scram")
    if fields:
        raise KasparError(f"Unknown SCRAM configurations: {', '.join(sorted(fields))}")
    iterations = _iterations(mechanism, count)
    salt = secrets.token_bytes(24) if given_salt is None else _decoded("salt", given_salt)
    if password is not None:
        return credential_of(mechanism, salted_password(mechanism, password, salt, iterations), salt, iterations)
    return credential_of(mechanism, _decoded("saltedPassword", salted or ""), salt, iterations)


def _iterations(mechanism: str, text: str) -> int:
    try:
        iterations = parse_int(text)
    except ValueError:
        raise KasparError(f"Failed to parse iterations count: {text}") from None
    if iterations < MIN_ITERATIONS:
        raise KasparError(f"The 'iterations' value must be >= {MIN_ITERATIONS} for add-scram using {mechanism}")
    if iterations > MAX_ITERATIONS:
        raise KasparError(f"The 'iterations' value must be <= {MAX_ITERATIONS} for add-scram using {mechanism}")
    return iterations


def _decoded(name: str, text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise KasparError(f"Failed to decode given {name}") from None
