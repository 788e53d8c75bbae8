"""What the registry's settings mean to its service and API. settings.py declares them with Confluent's names."""

from dataclasses import dataclass, field

from kaspar.schemas.levels import CompatibilityLevel


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """How long a page of a list is by default, and at most."""

    default: int
    maximum: int

    def page(self, requested: int) -> int:
        return requested if 0 < requested <= self.maximum else self.default


@dataclass(frozen=True, slots=True)
class RegistryOptions:
    compatibility_level: CompatibilityLevel = CompatibilityLevel.BACKWARD
    """schema.compatibility.level: where no config says otherwise."""
    mode_mutability: bool = True
    """mode.mutability"""
    validate_fields: bool = False
    """schema.validate.fields"""
    schema_search: SearchLimits = field(default=SearchLimits(1_000, 1_000))
    subject_search: SearchLimits = field(default=SearchLimits(20_000, 20_000))
    version_search: SearchLimits = field(default=SearchLimits(20_000, 20_000))
    context_search: SearchLimits = field(default=SearchLimits(20_000, 20_000))
    max_body_bytes: int = 16 * 1024 * 1024
    """A longer request body is refused with 413."""
    cluster_id: str = ""
    """Of the Kafka cluster that has `_schemas`."""
    group_id: str = "schema-registry"
