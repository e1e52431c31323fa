"""Full-text search over what a mount holds: terms, indexes in SQLite's FTS5, fusion of rankings."""
