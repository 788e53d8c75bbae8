"""Users that log in by SCRAM (KIP-554). Passwords are salted here; only the salted form is sent to a broker."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kaspar.base.errors import ErrorCode, Refused
from kaspar.client.admin.scram import (
    NewScramCredential,
    OldScramCredential,
    ScramCredentialInfo,
    alter_scram_credentials,
    describe_scram_credentials,
)
from kaspar.client.admin.session import Admin, raise_first
from kaspar.console.problems import Conflict, NotThere, Unacceptable, check_parts
from kaspar.security.scram import HASHES, MAX_ITERATIONS, MIN_ITERATIONS

MECHANISMS: Final = tuple(sorted(HASHES))


@dataclass(frozen=True, slots=True)
class Credential:
    mechanism: str
    iterations: int


@dataclass(frozen=True, slots=True)
class UserRow:
    name: str
    credentials: tuple[Credential, ...]


@dataclass(frozen=True, slots=True)
class UserPage:
    rows: tuple[UserRow, ...]
    matching: int
    total: int


def list_users(admin: Admin) -> list[UserRow]:
    """The users that have credentials, sorted by name. Raises Refused."""
    return [
        UserRow(name, tuple(Credential(each.mechanism, each.iterations) for each in found))
        for name, found in sorted(describe_scram_credentials(admin).items())
        if not isinstance(found, Refused)
    ]


def select(users: Sequence[UserRow], search: str, offset: int, limit: int) -> UserPage:
    matching = [user for user in users if search.casefold() in user.name.casefold()]
    return UserPage(tuple(matching[offset : offset + limit]), len(matching), len(users))


def create(admin: Admin, name: str, password: str, credential: Credential) -> None:
    """Create a credential. Raises Refused, Unacceptable, and Conflict if the user has one with this mechanism."""
    _check(name, password, credential)
    if credential.mechanism in _mechanisms(admin, name):
        raise Conflict(f"The user {name} already exists with {credential.mechanism}: change the password instead.")
    _set(admin, name, password, credential)


def change_password(admin: Admin, name: str, password: str, credential: Credential) -> None:
    """Replace a credential. Raises Refused, Unacceptable, and NotThere if the user has none with this mechanism."""
    _check(name, password, credential)
    if credential.mechanism not in _mechanisms(admin, name):
        raise NotThere(f"The user {name} with {credential.mechanism} no longer exists.")
    _set(admin, name, password, credential)


def remove(admin: Admin, name: str, mechanisms: Sequence[str]) -> None:
    """Remove credentials of a user. Raises Refused, PartlyRefused, and NotThere if the user has none of them."""
    present = [each for each in _mechanisms(admin, name) if each in mechanisms]
    if not present:
        raise NotThere(f"The user {name} no longer exists.")
    results: list[Refused | None] = []
    for mechanism in present:  # brokers reject two changes of one user in a request
        results += alter_scram_credentials(admin, old=[OldScramCredential(name, mechanism)]).values()
        check_parts(results)


def _set(admin: Admin, name: str, password: str, credential: Credential) -> None:
    info = ScramCredentialInfo(credential.mechanism, credential.iterations)
    raise_first(alter_scram_credentials(admin, new=[NewScramCredential(name, password, info)]).values())


def _check(name: str, password: str, credential: Credential) -> None:
    if not name:
        raise Unacceptable("The name of the user is missing.")
    if not password:
        raise Unacceptable("The password is missing.")
    if credential.mechanism not in MECHANISMS:
        raise Unacceptable(f"The mechanism must be one of {', '.join(MECHANISMS)}.")
    if not MIN_ITERATIONS <= credential.iterations <= MAX_ITERATIONS:
        raise Unacceptable(f"The iterations must be from {MIN_ITERATIONS} to {MAX_ITERATIONS}.")


def _mechanisms(admin: Admin, name: str) -> list[str]:
    found = describe_scram_credentials(admin, [name]).get(name, ())
    if isinstance(found, Refused):
        if found.code is not ErrorCode.RESOURCE_NOT_FOUND:
            raise found
        return []
    return [info.mechanism for info in found]
