from kaspar.records.core import plain_runs as plain_runs
from kaspar.records.core import record_fields as record_fields
