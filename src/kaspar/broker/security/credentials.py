"""The credentials in the cluster's metadata, as authentication looks them up: SCRAM users and delegation tokens."""

from collections.abc import Callable
from typing import Final

from kaspar.broker.services import CurrentSettings
from kaspar.metadata.images import ImageSource
from kaspar.security.delegation_tokens import password_of
from kaspar.security.scram import ScramCredential, ScramIdentity, new_credential

_KEPT_TOKENS: Final = 1000
_USER: Final = "User"


class Credentials:
    def __init__(self, images: ImageSource, settings: CurrentSettings, now_ms: Callable[[], int]) -> None:
        self._images = images
        self._settings = settings
        self._now_ms = now_ms
        self._of_tokens: dict[tuple[str, str], ScramCredential] = {}
        """Credentials of tokens that have been used, because computing one takes milliseconds."""

    def scram(self, mechanism: str, name: str, is_token: bool) -> ScramIdentity | None:
        """The credential of a user by name, or of a delegation token by its id."""
        if is_token:
            return self._of_token(mechanism, name)
        credential = self._images.current.scram_credentials.get(name, {}).get(mechanism)
        return None if credential is None else ScramIdentity(credential, name)

    def _of_token(self, mechanism: str, token_id: str) -> ScramIdentity | None:
        token = self._images.current.delegation_tokens.get(token_id)
        secret_key = self._settings.config.delegation_token_secret_key
        if token is None or not secret_key or token.has_expired(self._now_ms()):
            return None
        kind, name = token.owner
        if kind != _USER:
            return None  # an authenticated client is a user, which would be another principal
        credential = self._of_tokens.get((token_id, mechanism))
        if credential is None:
            if len(self._of_tokens) >= _KEPT_TOKENS:
                self._of_tokens.clear()
            credential = new_credential(mechanism, password_of(secret_key, token_id))
            self._of_tokens[token_id, mechanism] = credential
        return ScramIdentity(credential, name, token.expiry_ms)
