"""What is used of jsonschema-specifications, which comes without types."""

from typing import Any

from referencing import Registry

REGISTRY: Registry[Any]
