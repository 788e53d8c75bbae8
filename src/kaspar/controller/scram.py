"""Decisions about SCRAM credentials (KIP-554). A password is not stored, only what is needed to verify it."""

from kaspar.base.errors import ErrorCode, Refused
from kaspar.controller.decision import Decision, Draft
from kaspar.controller.events import (
    DONE,
    AlterScramCredentials,
    NamedOutcome,
    Outcome,
    ScramDeletion,
    ScramUpsertion,
)
from kaspar.metadata.image import ClusterImage
from kaspar.security.scram import MAX_ITERATIONS, MECHANISM_TYPES, MIN_ITERATIONS, credential_of


def alter_scram_credentials(image: ClusterImage, event: AlterScramCredentials) -> Decision[tuple[NamedOutcome, ...]]:
    """Alter credentials, at most once per user and request. Refused users come last in the reply, as in Kafka."""
    draft = Draft(image)
    accepted: dict[str, ScramDeletion | ScramUpsertion] = {}
    refused: dict[str, Outcome] = {}
    changes: list[ScramDeletion | ScramUpsertion] = [*event.deletions, *event.upsertions]
    for change in changes:
        if change.user in refused:
            continue
        if accepted.pop(change.user, None) is not None:
            refused[change.user] = Outcome(
                ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request"
            )
            continue
        try:
            _check(draft, change)
            accepted[change.user] = change
        except Refused as refusal:
            refused[change.user] = Outcome.of(refusal)
    for change in accepted.values():
        _apply(draft, change)
    outcomes = {**dict.fromkeys(accepted, DONE), **refused}
    return draft.decide(tuple(NamedOutcome(user, outcome) for user, outcome in outcomes.items()))


def _check(draft: Draft, change: ScramDeletion | ScramUpsertion) -> None:
    if not change.user:
        raise Refused(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    mechanism = MECHANISM_TYPES.get(change.mechanism)
    if mechanism is None:
        raise Refused(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if isinstance(change, ScramDeletion):
        if mechanism not in draft.scram(change.user):
            raise Refused(ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")
    elif change.iterations < MIN_ITERATIONS:
        raise Refused(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    elif change.iterations > MAX_ITERATIONS:
        raise Refused(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")


def _apply(draft: Draft, change: ScramDeletion | ScramUpsertion) -> None:
    mechanism = MECHANISM_TYPES[change.mechanism]
    credentials = dict(draft.scram(change.user))
    if isinstance(change, ScramDeletion):
        del credentials[mechanism]
    else:
        credentials[mechanism] = credential_of(mechanism, change.salted_password, change.salt, change.iterations)
    draft.put_scram(change.user, credentials)
