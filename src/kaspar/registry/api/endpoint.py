"""The declaration of an endpoint, and the request that its handler gets."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from http import HTTPStatus
from typing import Any, Final, TypeAlias, TypeVar

import msgspec
from starlette.datastructures import QueryParams

from kaspar.registry.authorization import CONFIG_RESOURCE, Authorizer, Operation, subject_resource
from kaspar.registry.decisions.registration import NewSchema
from kaspar.registry.entities import SchemaTags
from kaspar.registry.errors import http_error, invalid_version
from kaspar.registry.names import normalized, within
from kaspar.registry.parsing import unparseable
from kaspar.registry.queries import alias_target
from kaspar.registry.references import check_number, version_in_contexts
from kaspar.registry.service import LATEST, RegistryService
from kaspar.registry.state import State, StoredVersion
from kaspar.schemas import InvalidSchema
from kaspar.web.openapi import Parameter, ParameterKind

T = TypeVar("T")

_MAX_INT: Final = 2**31 - 1


class Access(Enum):
    """The permission that a caller needs, if permissions are enabled."""

    NOTHING = "no permission"
    READ_SUBJECT = "Read on the subject"
    WRITE_SUBJECT = "Write on the subject"
    READ_CONFIG = "Read on Config:"
    WRITE_CONFIG = "Write on Config:"
    READ_ANY = "Read on one of its subjects"


@dataclass(frozen=True, slots=True)
class WriteTexts:
    """The error messages of a write that fails for a reason other than the request itself."""

    timed_out: str
    failed: str
    not_forwarded: str
    no_leader: str = "Leader not known."


@dataclass(frozen=True, slots=True)
class Call:
    """A request to an endpoint. Reading a malformed parameter raises RegistryError."""

    service: RegistryService
    path: Mapping[str, str]
    subject: str
    """The subject of the request, for which permission is required; empty if the path has none."""
    query: QueryParams
    body: bytes
    user: str | None
    authorizer: Authorizer | None

    @property
    def version(self) -> int:
        """The version number in the path, or LATEST."""
        text = self.path["version"].strip()
        if text.lower() == "latest":
            return LATEST
        number = _integer(text)
        if number is None:
            raise invalid_version(self.path["version"])
        if number <= 0 and number != LATEST:
            raise invalid_version(text)
        return number

    def path_number(self, name: str) -> int:
        number = _integer(self.path[name])
        if number is None:
            raise http_error(HTTPStatus.NOT_FOUND)
        return number

    def text(self, name: str, default: str = "") -> str:
        return self.query.get(name, default)

    def texts(self, name: str) -> list[str]:
        return self.query.getlist(name)

    def flag(self, name: str) -> bool:
        return self.text(name).lower() == "true"

    def number(self, name: str, default: int) -> int:
        text = self.query.get(name)
        number = default if text is None else _integer(text)
        if number is None:
            raise http_error(HTTPStatus.NOT_FOUND)
        return number

    def decoded(self, kind: type[T]) -> T:
        if not self.body.strip() or self.body.strip() == b"null":
            raise http_error(HTTPStatus.UNPROCESSABLE_ENTITY, "The request body must not be null")
        try:
            return msgspec.json.decode(self.body, type=kind, strict=False)
        except msgspec.ValidationError as problem:
            raise http_error(HTTPStatus.BAD_REQUEST, f"Invalid request body: {problem}") from None
        except (msgspec.DecodeError, UnicodeDecodeError) as problem:
            raise http_error(HTTPStatus.BAD_REQUEST, f"Malformed JSON: {problem}") from None

    def check_references(self, new: NewSchema) -> None:
        """Raises RegistryError if the caller may not read a referenced schema: the resolved form would reveal it."""
        try:
            check_number(new.references)
        except InvalidSchema as problem:
            raise unparseable(new.type, problem) from None
        if self.authorizer is None:
            return
        for each in new.references:
            target = within(new.subject, each.subject)
            stored = version_in_contexts(self.service.state, target, each.version, deleted=True)
            if stored is not None and not self.may_read(stored.subject):
                raise http_error(HTTPStatus.FORBIDDEN, "Forbidden")

    async def found_tags(self, stored: StoredVersion) -> list[SchemaTags] | None:
        """The tags selected by `findTags`; None if the request does not have this parameter."""
        wanted = {*self.texts("findTags")}
        if not wanted:
            return None
        tags = await self.service.tags(stored)
        return [each for each in tags if "*" in wanted or wanted.intersection(each.tags)]

    def may_read(self, subject: str) -> bool:
        return self._may(Operation.READ, subject)

    def may_write(self, subject: str) -> bool:
        return self._may(Operation.WRITE, subject)

    def _may(self, operation: Operation, subject: str) -> bool:
        return self.authorizer is None or self.authorizer.allows(self.user, operation, subject_resource(subject))


def _integer(text: str) -> int | None:
    try:
        number = int(text) if text.isascii() else None
    except ValueError:
        return None
    return number if number is not None and abs(number) <= _MAX_INT else None


@dataclass(frozen=True, slots=True)
class Raw:
    """A body that is text already, such as a schema without its metadata."""

    text: str


class NoContent:
    """An empty response with status 204."""


Handler: TypeAlias = Callable[[Call], Awaitable[Any]]
"""Returns an object to send as JSON, or Raw or NoContent."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    method: str
    path: str
    handler: Handler
    summary: str
    tag: str
    access: Access
    response: Any
    parameters: tuple[Parameter, ...] = ()
    body: type[msgspec.Struct] | None = None
    errors: tuple[int, ...] = ()
    writes: WriteTexts | None = None
    """Set if the request changes something, so that only the leader may handle it."""
    segments: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "segments", tuple(self.path.strip("/").split("/")) if self.path != "/" else ())

    def subject_of(self, path: Mapping[str, str], state: State) -> str:
        """The subject in the path. In paths with `subjects`, an alias is replaced by its target. Config and mode are
        those of the alias itself (Confluent's AliasFilter)."""
        if "subject" not in path:
            return ""
        subject = normalized(path["subject"])
        return alias_target(state, subject) if "subjects" in self.segments else subject

    def check_access(self, call: Call) -> bool:
        if call.authorizer is None or self.access in (Access.NOTHING, Access.READ_ANY):
            return True
        operation = Operation.WRITE if self.access in (Access.WRITE_SUBJECT, Access.WRITE_CONFIG) else Operation.READ
        if self.access in (Access.READ_CONFIG, Access.WRITE_CONFIG):
            return call.authorizer.allows(call.user, operation, CONFIG_RESOURCE)
        return call.authorizer.allows(call.user, operation, subject_resource(call.subject))


# Parameters that several endpoints share.
DELETED: Final = Parameter("deleted", ParameterKind.FLAG, "Include soft-deleted")
DELETED_ONLY: Final = Parameter("deletedOnly", ParameterKind.FLAG, "Only soft-deleted")
NORMALIZE: Final = Parameter("normalize", ParameterKind.FLAG, "Normalize the schema first")
FORMAT: Final = Parameter(
    "format",
    ParameterKind.TEXT,
    "Another format of the text: `resolved` (Avro, JSON), `serialized`, `ignore_extensions` (Protobuf)",
)
REFERENCE_FORMAT: Final = Parameter(
    "referenceFormat", ParameterKind.TEXT, "`qualified` returns the subjects of references with their context"
)
FIND_TAGS: Final = Parameter(
    "findTags",
    ParameterKind.TEXTS,
    "Include the records and fields with one of these tags, or any tag (`*`); Avro only",
)
PERMANENT: Final = Parameter("permanent", ParameterKind.FLAG, "Permanently delete what was soft-deleted before")
OFFSET: Final = Parameter("offset", ParameterKind.NUMBER, "The offset of the page", 0)
LIMIT: Final = Parameter("limit", ParameterKind.NUMBER, "The maximum length of the page", -1)
VERBOSE: Final = Parameter("verbose", ParameterKind.FLAG, "Return the reasons for an incompatibility")
DEFAULT_TO_GLOBAL: Final = Parameter(
    "defaultToGlobal", ParameterKind.FLAG, "Fall back to the default if the subject has none"
)
