"""The Spark session that pipelines run in."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import KasparError
from kaspar.pipelines.folder import SessionPlan
from kaspar.pipelines.reasons import reason_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MASTER_VARIABLE: Final = "KASPAR_SPARK_MASTER"


def let_workers_import_from(folder: Path) -> None:
    """Let the workers on this machine, of a session that this process creates later, import modules from a folder."""
    earlier = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(folder), *([earlier] if earlier else [])])


def new_session(app_name: str, plan: SessionPlan) -> "SparkSession":
    """The session of this process, created if there is none. Raises KasparError if Spark does not start."""
    try:
        import kaspar.spark

        master = plan.master or os.environ.get(MASTER_VARIABLE) or None
        return kaspar.spark.session(app_name, master, plan.config)
    except KasparError:
        raise
    except ImportError as problem:
        raise KasparError(f"PySpark is not installed ({problem}): pip install 'kaspar[spark]'") from None
    except Exception as problem:
        raise KasparError(f"Spark did not start: {reason_of(problem)}") from problem
