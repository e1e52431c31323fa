stores = await df.db.shop.store.page(where={"open": 1})
rows = []
for store in stores.rows:
    forecast = await df.tool.wx.forecast(city=store["city"], days=1)
    rows.append({"city": store["city"], "sales": store["sales"], "celsius": forecast["celsius"][0]})
df.answer(status="answered", value=rows, derivation="open stores, each with the forecast of its city")
