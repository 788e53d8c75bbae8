"""The names of resources: URLs, and Confluent's resource names (CRN).

names.url("topics", "orders")                    http://localhost:8082/v3/clusters/5e1f/topics/orders
names.crn(("topic", "orders"))                   crn:///kafka=5e1f/topic=orders
"""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from kaspar.rest.v3.resources import ListMetadata, Metadata, Relationship

_SAFE = "-._~:@!$&'()*+,;="
"""The characters that need no quoting in a path segment."""


@dataclass(frozen=True, slots=True)
class ResourceNames:
    """The names of one cluster's resources."""

    base_url: str
    """The proxy's URL, without a slash at the end."""
    authority: str
    """The authority in resource names; usually empty."""
    cluster_id: str

    def url(self, *segments: str | int, query: Mapping[str, str] | None = None) -> str:
        path = "".join(f"/{quote(str(each), safe=_SAFE)}" for each in (self.cluster_id, *segments))
        url = f"{self.base_url}/v3/clusters{path}"
        return url if query is None else f"{url}?{urlencode(query)}"

    def crn(self, *parts: tuple[str, str | int | None]) -> str:
        """The resource name of these parts. A part without a name is the only resource of its kind in its parent."""
        named = (("kafka", self.cluster_id), *parts)
        path = "/".join(kind if name is None else f"{kind}={name}" for kind, name in named)
        return f"crn://{self.authority}/{path}"

    def related(self, *segments: str | int) -> Relationship:
        return Relationship(self.url(*segments))

    def one(self, *segments: str | int, crn: tuple[tuple[str, str | int | None], ...] = ()) -> Metadata:
        return Metadata(self.url(*segments), self.crn(*crn))

    def many(self, *segments: str | int) -> ListMetadata:
        return ListMetadata(self.url(*segments))
