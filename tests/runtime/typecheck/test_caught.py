"""Errors that the script itself takes are advice, the same errors elsewhere are not; nothing breaks the analysis.

In `corpus/errors/`: what follows after the rows of a page are there, between lines of three dashes.
"""

from __future__ import annotations

import ast
import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from affidavit.runtime.typecheck import Checker
from affidavit.runtime.typecheck.catalogue import Catalogue
from affidavit.runtime.typecheck.rules import keys
from affidavit.runtime.typecheck.rules.case import Case
from affidavit.runtime.typecheck.verdict import SourceText
from tests.runtime.typecheck import host
from tests.runtime.typecheck.conftest import Check
from tests.runtime.typecheck.test_hidden_keys import BEHIND, HARMLESS, scripts

_ROWS = "page = await df.db.app.modules.page()\nrows = page.rows\n"

CAUGHT = scripts("errors/caught")
UNCAUGHT = scripts("errors/uncaught")


@pytest.mark.parametrize("source", CAUGHT, ids=range(len(CAUGHT)))
def test_what_the_script_takes_is_no_reason_to_refuse_it(check: Check, source: str) -> None:
    assert check(_ROWS + source).blocking == ()


@pytest.mark.parametrize("source", UNCAUGHT, ids=range(len(UNCAUGHT)))
def test_what_would_end_the_script_is(check: Check, source: str) -> None:
    assert len(check(_ROWS + source).blocking) == 1


_STATEMENTS = [
    statement for script in (*BEHIND, *HARMLESS) for statement in ast.parse(script.replace("§", "")).body
]
_HOST = Catalogue.read(host.stubs())


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(_STATEMENTS), min_size=1, max_size=25))
def test_no_script_breaks_the_analysis(statements: list[ast.stmt]) -> None:
    source = ast.unparse(ast.Module(body=statements, type_ignores=[]))
    case = Case(SourceText(source), ast.parse(source), _HOST)
    for found in keys.misspelt(case):
        assert source.splitlines()[found.line - 1]


def test_scripts_in_a_row_do_not_tell_on_each_other() -> None:
    async def run() -> None:
        async with Checker(timeout=30.0, start_timeout=60.0) as checker:
            for _ in range(2):
                wrong = await checker.check(BEHIND[0].replace("§", ""), stubs=host.stubs())
                right = await checker.check(HARMLESS[0], stubs=host.stubs())
                assert (wrong.status, right.blocking) == ("rejected", ())

    asyncio.run(run())
