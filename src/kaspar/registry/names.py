"""Names of subjects and contexts.

A context is a namespace of subjects and ids. The subject `orders` of the context `.eu` is written `:.eu:orders`; the
default context `.` is omitted. `:*:` means every context, in prefixes only (Confluent's QualifiedSubject).
"""

from typing import Final, NamedTuple

DEFAULT_CONTEXT: Final = "."
ANY_CONTEXT: Final = ":*:"
GLOBAL_CONTEXT_PREFIX: Final = ":.__GLOBAL:"
"""The context whose config and mode apply if neither the subject nor its context has its own."""

TENANT: Final = "default"
"""Confluent's cloud has many tenants; a self-managed registry has this one."""

_GLOBAL_SUBJECT: Final = "__GLOBAL"
_CONTEXT_PREFIX: Final = ":."


class QualifiedSubject(NamedTuple):
    context: str
    subject: str

    @property
    def context_prefix(self) -> str:
        """The context as a prefix of subjects; empty for the default context."""
        return context_prefix(self.context)

    def __str__(self) -> str:
        return self.context_prefix + self.subject


def qualified(subject: str) -> QualifiedSubject:
    if subject.startswith(_CONTEXT_PREFIX):
        context, _, name = subject[1:].partition(":")
        return QualifiedSubject(context, name)
    if subject.startswith(ANY_CONTEXT):
        return QualifiedSubject("*", subject[len(ANY_CONTEXT) :])
    return QualifiedSubject(DEFAULT_CONTEXT, subject)


def context_prefix(context: str) -> str:
    return "" if context == DEFAULT_CONTEXT else f":{context}:"


def context_of(subject: str) -> str:
    return qualified(subject).context if subject.startswith(":") else DEFAULT_CONTEXT


def normalized(subject: str) -> str:
    """The canonical name of the subject: the default context is omitted."""
    return str(qualified(subject)) if subject.startswith(":") else subject


def within(parent: str, subject: str) -> str:
    """The name of a subject that is mentioned inside `parent`, such as in a reference or an alias: if unqualified, it
    is in the same context."""
    name = qualified(subject)
    if name.context == DEFAULT_CONTEXT:
        return context_prefix(context_of(parent)) + name.subject
    return str(name)


def normalized_context(context: str) -> str:
    """The prefix of subjects for `eu`, `.eu` or `:.eu:`. Raises ValueError for a colon inside the name."""
    name = context.removeprefix(":").removesuffix(":")
    if ":" in name:
        raise ValueError("Context name cannot contain a colon")
    return context_prefix(name if name.startswith(".") else f".{name}")


def is_valid_subject(subject: str) -> bool:
    """Rejects control characters, and a name that Confluent uses for permissions."""
    return qualified(subject).subject != _GLOBAL_SUBJECT and not any(
        character < " " or "\x7f" <= character <= "\x9f" for character in subject
    )
