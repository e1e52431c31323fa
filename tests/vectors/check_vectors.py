"""Check every vector with `docs/verify_independently.py` alone. Run with `python -I -S`, without the product."""

import json
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
CHECKS: dict[str, Any] = runpy.run_path(str(HERE.parents[1] / "docs" / "verify_independently.py"))
CHECKS.update(vars(sys.modules["verify_forms"]))


def refuses(check: Callable[..., object], *arguments: object) -> bool:
    try:
        check(*arguments)
    except CHECKS["WrongError"]:
        return True
    return False


def reformat(text: str) -> str:
    """The canonical form of a JSON text."""
    return CHECKS["canonical"](CHECKS["read"](text.encode("utf-8")))


def canonical(vectors: Any) -> None:
    for it in vectors["valid"]:
        assert reformat(it["json"]) == it["canonical"], it
    for it in vectors["invalid"]:
        assert refuses(reformat, it["json"]), it


def values(vectors: Any) -> None:
    for it in vectors["valid"]:
        CHECKS["check_value"](it["json"])
        assert CHECKS["canonical"](it["json"]) == it["canonical"], it
    for it in vectors["invalid"]:
        assert refuses(CHECKS["check_value"], it), it


def encodings(vectors: Any) -> None:
    for it in vectors["valid"]:
        CHECKS["check_value"](it)
    for it in vectors["invalid"]:
        assert refuses(CHECKS["check_value"], it), it


def identity(vectors: Any) -> None:
    for it in vectors["records"]:
        assert CHECKS["canonical"](it["body"]) == it["canonical"], it["name"]
        assert CHECKS["record_id"](it["canonical"].encode()) == it["id"], it["name"]
        CHECKS["check_record"](it["body"], it["notes"])
    for it in vectors["invalid"]:
        assert refuses(CHECKS["check_record"], it["body"], None), it["name"]


def bundle(vectors: Any) -> None:
    for it in vectors["valid"]:
        CHECKS["check_bundle"](it["bundle"].encode())
    for it in vectors["invalid"]:
        assert refuses(CHECKS["check_bundle"], it["bundle"].encode()), it["name"]


def journal(vectors: Any) -> None:
    for it in vectors["valid"]:
        CHECKS["check_journal"]([it["journal"].encode()])
    for it in vectors["invalid"]:
        assert refuses(CHECKS["check_journal"], [it["journal"].encode()]), it["name"]


def main() -> None:
    assert not [name for name in sys.modules if name.partition(".")[0] in ("affidavit", "orjson", "rfc8785")]
    count = 0
    for check in (canonical, values, encodings, identity, bundle, journal):
        vectors: dict[str, Any] = json.loads((HERE / f"{check.__name__}.json").read_text("utf-8"))
        check(vectors)
        count += sum(len(part) for name, part in vectors.items() if name != "about")
    sys.stdout.write(f"{count} vectors hold\n")


if __name__ == "__main__":
    main()
