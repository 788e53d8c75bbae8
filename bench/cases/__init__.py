"""The cases. Each measures one or more rows of the table, for one side and one round at a time."""

from bench.cases.case import Case, CaseOf
from bench.cases.catalog import all_cases

__all__ = ["Case", "CaseOf", "all_cases"]
