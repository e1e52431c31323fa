"""Scripts are checked before they run: a proven error is refused, everything else is advice.

`Checker` is the only entry. CPython decides syntax, a warm type checker finds what types can tell, and an explicit
list of rules (`policy`) decides which findings *prove* an error. A correct script is never rejected.
"""

from affidavit.runtime.typecheck.checker import Checker
from affidavit.runtime.typecheck.verdict import Diagnostic, Verdict

__all__ = ["Checker", "Diagnostic", "Verdict"]
