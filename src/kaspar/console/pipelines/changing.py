"""Restarts and stops pipelines like `kaspar pipeline`: by changing their definitions, which the host follows.

The page does not wait for the change: a micro-batch may take long to finish, and the list shows the state.
"""

from pathlib import Path
from typing import Final

from kaspar.base.errors import KasparError
from kaspar.console.pipelines.reading import check_there, open_folder
from kaspar.console.problems import Conflict, Unfinished

_RESPONSE_S: Final = 5.0


def restart(path: Path | None, name: str) -> None:
    """Restart a pipeline. Raises NotThere, Conflict if no supervisor would start it, and Unfinished."""
    from kaspar.pipelines import definitions

    folder = open_folder(path)
    check_there(folder, name)
    if folder.supervisor() is None:
        raise Conflict(f"No supervisor is running in {folder.path}: 'kaspar pipeline run' starts one.")
    definitions.restart(folder, [name])
    _apply(folder.socket, name)


def stop(path: Path | None, name: str) -> None:
    """Stop a pipeline. Raises NotThere and Unfinished."""
    from kaspar.pipelines import definitions

    folder = open_folder(path)
    check_there(folder, name)
    definitions.stop(folder, [name])
    _apply(folder.socket, name)


def _apply(socket: Path, name: str) -> None:
    """Tell the host to read the definitions again. If there is no host, the next one starts with the new definitions.
    Raises Unfinished if the host does not respond."""
    from kaspar.pipelines.control import NoHost, ask
    from kaspar.pipelines.messages import ApplyChanges, Pipelines

    try:
        ask(socket, ApplyChanges((name,), 0.0), Pipelines, timeout_s=_RESPONSE_S)
    except NoHost:
        return
    except KasparError as problem:
        raise Unfinished(f"The change was saved, but the pipeline host does not respond: {problem}") from None
