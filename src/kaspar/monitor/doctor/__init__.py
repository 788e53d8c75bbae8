"""`kaspar doctor`: observes a cluster for a minute and reports current and impending problems, with the commands that
fix them.

| package | |
|---|---|
| `doctor` | `Doctor`: makes looks; `findings` evaluates them |
| `observing` | makes an `Observation` from administrative calls, metrics pages and TLS handshakes |
| `checks` | one function per check: pure, from several observations to faults |
| `check` | how a check is declared, with its documentation |
| `plans` | reassignments that add replicas or spread them |
"""

from kaspar.monitor.doctor.access import Access
from kaspar.monitor.doctor.doctor import Doctor, findings
from kaspar.monitor.doctor.finding import Finding, Severity
from kaspar.monitor.doctor.observation import Observation

__all__ = ["Access", "Doctor", "Finding", "Observation", "Severity", "findings"]
