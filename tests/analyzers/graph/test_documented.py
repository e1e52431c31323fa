"""The example of the documentation and the one beside the export scripts are one."""

from __future__ import annotations

import json
import re
from pathlib import Path

from affidavit.analyzers.graph.form import Function, read_function

ROOT = Path(__file__).parents[3]


def test_the_documented_example_is_a_file_that_is_read() -> None:
    page = (ROOT / "docs" / "graphs.md").read_text()
    [shown] = re.findall(r"^```json\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    example = json.loads((ROOT / "examples" / "exports" / "login.json").read_text())
    assert json.loads(shown) == example
    assert isinstance(read_function(example["functions"][0]), Function)
