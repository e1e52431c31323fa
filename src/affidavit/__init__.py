"""Code mode for agents that must show their work.

A script runs in a sandbox against typed namespaces; every call that it makes becomes a content-addressed record:

```python
import affidavit

async with affidavit.Workspace.open(".affidavit") as workspace:
    workspace.mount("app=./app.asar")
    session = await workspace.session()
    run = await session.run('(await df.db.app.modules.count(by="kind")).groups')
    print(run.data, [call.evidence_id for call in run.calls])
```

Importing this package loads nothing; each name below is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from affidavit.errors import AffidavitError
    from affidavit.evidence.record import Coverage, Record
    from affidavit.namespaces.operation import Namespace, Operation
    from affidavit.policy import Grant
    from affidavit.runtime.program import Limits
    from affidavit.runtime.run import Run
    from affidavit.runtime.session import Session
    from affidavit.workspace import Workspace

__all__ = [
    "AffidavitError",
    "Coverage",
    "Grant",
    "Limits",
    "Namespace",
    "Operation",
    "Record",
    "Run",
    "Session",
    "Workspace",
    "__version__",
]

__version__ = "0.1.0"

_PLACES = {
    "AffidavitError": "affidavit.errors",
    "Coverage": "affidavit.evidence.record",
    "Grant": "affidavit.policy",
    "Limits": "affidavit.runtime.program",
    "Namespace": "affidavit.namespaces.operation",
    "Operation": "affidavit.namespaces.operation",
    "Record": "affidavit.evidence.record",
    "Run": "affidavit.runtime.run",
    "Session": "affidavit.runtime.session",
    "Workspace": "affidavit.workspace",
}


def __getattr__(name: str) -> object:
    """Load a public name when it is first asked for."""
    if name not in _PLACES:
        raise AttributeError(f"module 'affidavit' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_PLACES[name]), name)
