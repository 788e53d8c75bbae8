"""DescribeUserScramCredentials: the mechanisms that users can authenticate with, and nothing of their passwords."""

from collections import Counter
from collections.abc import Mapping
from typing import Final

from kaspar.base.errors import ErrorCode
from kaspar.metadata.images import ImageSource
from kaspar.network.api import RequestContext
from kaspar.protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from kaspar.security.scram import MECHANISM_TYPES, ScramCredential

NO_MESSAGE: Final = ""  # Kafka's message for success


class DescribeUserScramCredentialsHandler:
    def __init__(self, images: ImageSource) -> None:
        self._images = images

    def __call__(
        self, context: RequestContext, request: DescribeUserScramCredentialsRequest
    ) -> DescribeUserScramCredentialsResponse:
        """Describe the named users, or all users if none are named."""
        everybody = self._images.current.scram_credentials
        times = Counter(each.name for each in request.users or ()) or Counter(dict.fromkeys(everybody, 1))
        return DescribeUserScramCredentialsResponse(
            error_message=NO_MESSAGE,
            results=tuple(_result(user, everybody.get(user), count) for user, count in times.items()),
        )


def _result(
    user: str, credentials: Mapping[str, ScramCredential] | None, times: int
) -> DescribeUserScramCredentialsResult:
    if times > 1:
        return _refused(
            user,
            ErrorCode.DUPLICATE_RESOURCE,
            f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}",
        )
    if credentials is None:
        return _refused(
            user,
            ErrorCode.RESOURCE_NOT_FOUND,
            f"Attempt to describe a user credential that does not exist: {user}",
        )
    return DescribeUserScramCredentialsResult(
        user=user,
        error_message=NO_MESSAGE,
        credential_infos=tuple(
            CredentialInfo(mechanism=code, iterations=credentials[mechanism].iterations)
            for code, mechanism in MECHANISM_TYPES.items()
            if mechanism in credentials
        ),
    )


def _refused(user: str, code: ErrorCode, message: str) -> DescribeUserScramCredentialsResult:
    return DescribeUserScramCredentialsResult(user=user, error_code=code, error_message=message, credential_infos=())
