"""Implements `kafka-metadata-quorum add-controller`: adds a controller according to its settings and its directory."""

from collections.abc import Mapping
from pathlib import Path
from uuid import UUID

from kaspar.base.ids import uuid_from_text, uuid_to_text
from kaspar.client.admin.quorum import Endpoint, add_voter
from kaspar.client.admin.session import Admin
from kaspar.config import load_settings, read_properties
from kaspar.tools.command_line import CommandFailed

_VALID = "Is this a valid controller configuration file?"


def add_controller(admin: Admin, config_file: str | None, *, dry_run: bool) -> str:
    """Add the controller. Returns a sentence that says what was done."""
    if config_file is None:
        raise CommandFailed(
            "You must supply the configuration file of the controller you are adding when using add-controller."
        )
    settings = load_settings(Path(config_file))
    node_id = controller_id(settings)
    directory_id = _directory_id(metadata_directory(settings))
    endpoints = controller_endpoints(settings)
    if not dry_run:
        add_voter(admin, node_id, directory_id, endpoints)
    addresses = ", ".join(
        f"{each.listener}://{f'[{each.host}]' if ':' in each.host else each.host}:{each.port}" for each in endpoints
    )
    return (
        f"{'DRY RUN of adding' if dry_run else 'Added'} controller {node_id} with directory id "
        f"{uuid_to_text(directory_id)} and endpoints: {addresses}"
    )


def controller_id(settings: Mapping[str, str]) -> int:
    if "node.id" not in settings:
        raise CommandFailed(f"node.id not found in configuration file. {_VALID}")
    node_id = int(settings["node.id"])
    if node_id < 0:
        raise CommandFailed(f"node.id was negative in configuration file. {_VALID}")
    if "controller" not in settings.get("process.roles", ""):
        raise CommandFailed(f"process.roles did not contain 'controller' in configuration file. {_VALID}")
    return node_id


def metadata_directory(settings: Mapping[str, str]) -> str:
    folders = settings.get("metadata.log.dir") or settings.get("log.dirs", "").split(",")[0].strip()
    if not folders:
        raise CommandFailed(f"Neither metadata.log.dir nor log.dirs were found. {_VALID}")
    return folders


def _directory_id(folder: str) -> UUID:
    try:
        properties = read_properties((Path(folder) / "meta.properties").read_text(encoding="utf-8"))
    except OSError:
        raise CommandFailed(f"Unable to read meta.properties from {folder}") from None
    if "directory.id" not in properties:
        raise CommandFailed(f"No directory id found in {folder}")
    return uuid_from_text(properties["directory.id"])


def controller_endpoints(settings: Mapping[str, str]) -> list[Endpoint]:
    """The endpoints that the controller advertises, or else listens on."""
    listeners: dict[str, Endpoint] = {}
    for name in ("listeners", "advertised.listeners"):
        for text in filter(None, (each.strip() for each in settings.get(name, "").split(","))):
            listener, _, address = text.partition("://")
            host, _, port = address.rpartition(":")
            listeners[listener.upper()] = Endpoint(listener.upper(), host.strip("[]") or "localhost", int(port))
    if "controller.listener.names" not in settings:
        raise CommandFailed(f"controller.listener.names was not found. {_VALID}")
    endpoints = []
    for each in settings["controller.listener.names"].split(","):
        wanted = each.strip().upper()
        if wanted not in listeners:
            raise CommandFailed(f"Cannot find information about controller listener name: {wanted}")
        endpoints.append(listeners[wanted])
    return endpoints
