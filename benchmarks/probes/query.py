"""A warm process that asks a mounted dataset: `query.py WORKSPACE`.

Each request is answered with the seconds that a first page (dataset opened anew), the same page again, the next page
and its rows one by one took, and with the bytes of the replies. `complete_bytes` are the items' replies with the
record of each, which holds what a page says once: source, coverage, producer, parents.
"""

import asyncio
import json
import sys
import time
from typing import Any

import orjson

from affidavit import Workspace
from affidavit.evidence.identity import to_json
from affidavit.runtime.program import CallReturned
from affidavit.runtime.session import Session

IDS = {"references": "reference_id", "modules": "node_id"}


async def timed(session: Session, path: str, **arguments: Any) -> tuple[float, bytes]:
    started = time.perf_counter()
    result = await session.call(path, arguments)
    seconds = time.perf_counter() - started
    assert isinstance(result, CallReturned), result
    return seconds, result.json


async def measure(root: str, collection: str, where: dict[str, Any] | None, limit: int) -> dict[str, Any]:
    at = f"db.app.{collection}"
    asked = {} if where is None else {"where": where}
    async with Workspace.open(root) as workspace:
        session = await workspace.session()
        first, page = await timed(session, f"{at}.page", limit=limit, **asked)
        again, same = await timed(session, f"{at}.page", limit=limit, **asked)
        assert page == same
        following, _ = await timed(session, f"{at}.page", limit=limit, offset=limit, **asked)
        ids = [row[IDS[collection]] for row in json.loads(page)["rows"]]
        gets = [await timed(session, f"{at}.get", id=one) for one in ids]
        recorded = [it for it in workspace.store.events.of_session(session.id) if it.kind == "call-recorded"]
        records = [
            to_json(workspace.store.evidence.get(it.evidence_id or "")) for it in recorded[-len(ids) :]
        ]
        many, batch = await timed(session, f"{at}.get_many", ids=ids)
    return {
        "rows": len(ids),
        "first": first,
        "again": again,
        "following": following,
        "gets": sum(seconds for seconds, _ in gets),
        "many": many,
        "page_bytes": len(page),
        "gets_bytes": sum(len(reply) for _, reply in gets),
        "complete_bytes": sum(len(orjson.dumps(record)) for record in records),
        "many_bytes": len(batch),
    }


for line in sys.stdin:
    request = json.loads(line)
    answer = asyncio.run(measure(sys.argv[1], request["collection"], request["where"], request["limit"]))
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
