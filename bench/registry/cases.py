"""All cases."""

from bench.registry.case import RegistryCase
from bench.registry.reads import reads
from bench.registry.registrations import Registrations
from bench.registry.rest import rest_cases
from bench.registry.starts import Start, StartWithMany


def all_cases() -> list[RegistryCase]:
    """The cases in order. Registrations come last among those that share a registry: they add to what a start reads."""
    return [Start(), *reads(), Registrations(1), Registrations(8), StartWithMany(), *rest_cases()]
