"""Restarts and stops pipelines, as `kaspar pipeline` does: by their definitions, which the host follows.

The page is not kept waiting: a micro-batch may take long to finish, and the state is seen in the list.
"""

from pathlib import Path
from typing import Final

from kaspar.base.errors import KasparError
from kaspar.console.pipelines.reading import check_there, open_folder
from kaspar.console.problems import Conflict, Unfinished

_RESPONSE_S: Final = 5.0


def restart(path: Path | None, name: str) -> None:
    """Raises NotThere, and Conflict if no supervisor would start it."""
    from kaspar.pipelines import definitions

    folder = open_folder(path)
    check_there(folder, name)
    if folder.supervisor() is None:
        raise Conflict(f"No supervisor is running in {folder.path}: 'kaspar pipeline run' starts one.")
    definitions.restart(folder, [name])
    _apply(folder.socket, name)


def stop(path: Path | None, name: str) -> None:
    """Raises NotThere."""
    from kaspar.pipelines import definitions

    folder = open_folder(path)
    check_there(folder, name)
    definitions.stop(folder, [name])
    _apply(folder.socket, name)


def _apply(socket: Path, name: str) -> None:
    """Have the host look at the definitions. Without a host, the next one begins with them."""
    from kaspar.pipelines.control import NoHost, ask
    from kaspar.pipelines.messages import ApplyChanges, Pipelines

    try:
        ask(socket, ApplyChanges((name,), 0.0), Pipelines, timeout_s=_RESPONSE_S)
    except NoHost:
        return
    except KasparError as problem:
        raise Unfinished(f"The change was saved, but the pipeline host does not respond: {problem}") from None
