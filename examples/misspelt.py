page = await df.db.app.references.page(where={"resolutoin": "computed"})
page.rows
