"""SCRAM credentials and delegation tokens."""

import base64
from collections.abc import Mapping

from kaspar.metadata.layout.json_values import decode, encode
from kaspar.metadata.layout.store_paths import SCRAM, TOKENS, resource_path
from kaspar.metadata.store import Create, Delete, Operation, Put
from kaspar.security.delegation_tokens import DelegationToken
from kaspar.security.scram import ScramCredential


def scram_change(user: str, old: Mapping[str, ScramCredential], new: Mapping[str, ScramCredential]) -> list[Operation]:
    """The operations that change a user's credentials. A user without credentials has no node."""
    path = resource_path(SCRAM, user)
    if not new:
        return [Delete(path)] if old else []
    value = encode({mechanism: _encode_credential(credential) for mechanism, credential in new.items()})
    return [Put(path, value) if old else Create(path, value)]


def _encode_credential(credential: ScramCredential) -> dict[str, object]:
    return {
        "salt": base64.b64encode(credential.salt).decode(),
        "stored_key": base64.b64encode(credential.stored_key).decode(),
        "server_key": base64.b64encode(credential.server_key).decode(),
        "iterations": credential.iterations,
    }


def decode_scram(value: bytes) -> dict[str, ScramCredential]:
    return {
        mechanism: ScramCredential(
            base64.b64decode(fields["salt"]),
            base64.b64decode(fields["stored_key"]),
            base64.b64decode(fields["server_key"]),
            fields["iterations"],
        )
        for mechanism, fields in decode(value).items()
    }


def token_change(token: DelegationToken, *, is_new: bool) -> list[Operation]:
    value = encode(
        {
            "owner": token.owner,
            "requester": token.requester,
            "renewers": token.renewers,
            "times": [token.issue_ms, token.expiry_ms, token.max_ms],
        }
    )
    path = f"{TOKENS}/{token.token_id}"
    return [Create(path, value) if is_new else Put(path, value)]


def token_removal(token_id: str) -> list[Operation]:
    return [Delete(f"{TOKENS}/{token_id}")]


def decode_token(token_id: str, value: bytes) -> DelegationToken:
    fields = decode(value)
    return DelegationToken(
        token_id,
        tuple(fields["owner"]),
        tuple(fields["requester"]),
        tuple(tuple(each) for each in fields["renewers"]),
        *fields["times"],
    )
