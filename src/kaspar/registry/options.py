"""The options of the service and the API. settings.py declares the settings with Confluent's names."""

from dataclasses import dataclass, field

from kaspar.schemas.levels import CompatibilityLevel


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """The default and maximum length of a page of a list."""

    default: int
    maximum: int

    def page(self, requested: int) -> int:
        return requested if 0 < requested <= self.maximum else self.default


@dataclass(frozen=True, slots=True)
class RegistryOptions:
    compatibility_level: CompatibilityLevel = CompatibilityLevel.BACKWARD
    """schema.compatibility.level: the level if no config sets one."""
    mode_mutability: bool = True
    """mode.mutability"""
    validate_fields: bool = False
    """schema.validate.fields"""
    schema_search: SearchLimits = field(default=SearchLimits(1_000, 1_000))
    subject_search: SearchLimits = field(default=SearchLimits(20_000, 20_000))
    version_search: SearchLimits = field(default=SearchLimits(20_000, 20_000))
    context_search: SearchLimits = field(default=SearchLimits(20_000, 20_000))
    max_body_bytes: int = 16 * 1024 * 1024
    """A larger request body is rejected with status 413."""
    cluster_id: str = ""
    """The id of the Kafka cluster that has `_schemas`."""
    group_id: str = "schema-registry"
