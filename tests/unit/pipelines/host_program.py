"""In the place of a host: `python host_program.py EXIT_CODE FINISHED_AFTER_S FOLDER`.

Reports one pipeline, which runs, and has finished after that time. Counts its starts in the file `starts`, and ends
with that code when a file `end` appears.
"""

import sys
import time
from pathlib import Path

from kaspar.pipelines.control import ControlServer
from kaspar.pipelines.folder import Folder
from kaspar.pipelines.messages import Pipelines, Request
from kaspar.pipelines.statuses import PipelineStatus, State


def main(exit_code: int, finished_after_s: float, folder: Folder) -> int:
    finished_at = time.monotonic() + finished_after_s

    def respond(request: Request) -> Pipelines:
        state = State.FINISHED if time.monotonic() > finished_at else State.RUNNING
        return Pipelines((PipelineStatus("app", state, 0),), is_ready=True)

    with (folder.path / "starts").open("a") as starts:
        starts.write("x")
    ControlServer(folder.socket, respond)
    end = folder.path / "end"
    while not end.exists():
        time.sleep(0.01)
    end.unlink()
    return exit_code


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), float(sys.argv[2]), Folder(Path(sys.argv[3]))))
