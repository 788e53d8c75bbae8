"""Fields that the JSON of all resources has in common."""

import msgspec


class ErrorBody(msgspec.Struct):
    error_code: int
    message: str


class Metadata(msgspec.Struct):
    self: str
    resource_name: str | None = None


class ListMetadata(msgspec.Struct):
    self: str
    next: str | None = None
    """Always null: lists are not split into pages."""


class Relationship(msgspec.Struct):
    related: str


class Resource(msgspec.Struct, kw_only=True):
    """`kind` is the type of the resource; each class has its own."""

    kind: str
    metadata: Metadata


class ResourceList(msgspec.Struct, kw_only=True):
    kind: str
    metadata: ListMetadata
