"""Describes and alters the SCRAM credentials of users (KIP-554). A password is salted here, and never sent."""

import secrets
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from kaspar.base.errors import ErrorCode, Refused
from kaspar.client.admin.session import Admin, common_code, refusal, refuse
from kaspar.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kaspar.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)
from kaspar.security.scram import MAX_ITERATIONS, MECHANISM_TYPES, MIN_ITERATIONS, salted_password

_TYPES = {name: number for number, name in MECHANISM_TYPES.items()}
_SALT_BYTES = 24


@dataclass(frozen=True, slots=True)
class ScramCredentialInfo:
    mechanism: str
    iterations: int = MIN_ITERATIONS


@dataclass(frozen=True, slots=True)
class NewScramCredential:
    user: str
    password: str = field(repr=False)
    info: ScramCredentialInfo


@dataclass(frozen=True, slots=True)
class OldScramCredential:
    """A credential to be deleted."""

    user: str
    mechanism: str


def describe_scram_credentials(
    admin: Admin, users: Collection[str] | None = None
) -> dict[str, tuple[ScramCredentialInfo, ...] | Refused]:
    """The credentials of these users, or of all users that have some. A user without credentials is refused with
    RESOURCE_NOT_FOUND. Raises Refused.
    """
    names = None if users is None else tuple(UserName(name=name) for name in users)
    response = admin.ask_any(
        "describeUserScramCredentials",
        DescribeUserScramCredentialsRequest(users=names),
        DescribeUserScramCredentialsResponse,
    )
    refuse(response.error_code, response.error_message)
    return {
        result.user: refusal(result.error_code, result.error_message)
        or tuple(
            ScramCredentialInfo(MECHANISM_TYPES.get(each.mechanism, "UNKNOWN"), each.iterations)
            for each in sorted(result.credential_infos, key=lambda info: info.mechanism)
        )
        for result in response.results
    }


def alter_scram_credentials(
    admin: Admin, new: Iterable[NewScramCredential] = (), old: Iterable[OldScramCredential] = ()
) -> dict[str, Refused | None]:
    """Create or replace credentials, and delete others. Returns for each user why it was refused, or None. A user may
    appear only once: brokers refuse two changes of one user."""
    refused: dict[str, Refused | None] = {}
    upsertions = []
    for each in new:
        if (problem := _unacceptable(each)) is not None:
            refused[each.user] = problem
        else:
            upsertions.append(_upsertion(each))
    deletions = tuple(ScramCredentialDeletion(name=each.user, mechanism=_TYPES[each.mechanism]) for each in old)
    if not upsertions and not deletions:
        return refused
    response = admin.ask_any(
        "alterUserScramCredentials",
        AlterUserScramCredentialsRequest(deletions=deletions, upsertions=tuple(upsertions)),
        AlterUserScramCredentialsResponse,
        code_of=lambda response: common_code(each.error_code for each in response.results),
    )
    return refused | {each.user: refusal(each.error_code, each.error_message) for each in response.results}


def _unacceptable(new: NewScramCredential) -> Refused | None:
    """Check the same things as Kafka's Admin, and the limit on iterations: computing too many would take long, and then
    the broker would refuse the request.
    """
    if not new.user:
        return Refused(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if not new.password:
        return Refused(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Password must not be empty")
    if new.info.iterations > MAX_ITERATIONS:
        return Refused(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    return None


def _upsertion(new: NewScramCredential) -> ScramCredentialUpsertion:
    salt = secrets.token_bytes(_SALT_BYTES)
    mechanism, iterations = new.info.mechanism, new.info.iterations
    return ScramCredentialUpsertion(
        name=new.user,
        mechanism=_TYPES[mechanism],
        iterations=iterations,
        salt=salt,
        salted_password=salted_password(mechanism, new.password, salt, iterations),
    )
