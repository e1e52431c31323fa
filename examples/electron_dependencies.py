"""Which external packages does one file of the application refer to, and how often?

Run it with: affidavit run examples/electron_dependencies.py --mount app=FILE --input main=PATH_IN_THE_APPLICATION
"""

rows = []
async for page in df.db.app.modules.pages(where={"path": main, "status": "external"}):
    for number, row in enumerate(page.rows):
        rows.append(
            {
                "package": row["identity"]["key"].removeprefix("external:"),
                "sites": row["sites"],
                "evidence": f"{page.evidence_id}#/rows/{number}",
            }
        )

rows.sort(key=lambda row: (-row["sites"], row["package"]))
df.answer(
    status="answered",
    value=rows,
    evidence=[row["evidence"] for row in rows] or None,
    derivation=f"unresolved modules of {main} with status external; sites are reference expressions",
)
