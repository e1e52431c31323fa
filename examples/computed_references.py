page = await df.db.app.references.page(where={"resolution": "computed"})
[{"path": row["path"], "line": row["line"], "kind": row["kind"]} for row in page.rows]
