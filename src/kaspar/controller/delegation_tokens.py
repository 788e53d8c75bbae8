"""Decisions about delegation tokens: tokens that a broker has checked are stored, and expired ones are removed."""

from kaspar.base.errors import ErrorCode, Refused
from kaspar.controller.decision import Decision, Draft
from kaspar.controller.events import PutDelegationToken, RemoveDelegationToken
from kaspar.metadata.image import ClusterImage


def put_delegation_token(image: ClusterImage, event: PutDelegationToken) -> Decision[None]:
    """Store a token. Raises Refused (DELEGATION_TOKEN_NOT_FOUND) if a token to be changed no longer exists."""
    draft = Draft(image)
    if event.is_new:
        for token in image.delegation_tokens.values():
            if token.has_expired(event.now_ms):
                draft.remove_token(token.token_id)
    elif event.token.token_id not in image.delegation_tokens:
        raise Refused(ErrorCode.DELEGATION_TOKEN_NOT_FOUND, "The token no longer exists.")
    draft.put_token(event.token)
    return draft.decide(None)


def remove_delegation_token(image: ClusterImage, event: RemoveDelegationToken) -> Decision[None]:
    draft = Draft(image)
    if event.token_id in image.delegation_tokens:
        draft.remove_token(event.token_id)
    return draft.decide(None)
