"""Where things are kept: the event log, evidence, blobs. SQLite."""
