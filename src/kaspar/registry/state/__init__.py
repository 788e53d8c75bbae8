"""The state of the registry: the replayed records of `_schemas`, with the indexes that requests need."""

from kaspar.registry.state.contexts import ContextIndex
from kaspar.registry.state.state import Listing, State
from kaspar.registry.state.versions import StoredVersion

__all__ = ["ContextIndex", "Listing", "State", "StoredVersion"]
