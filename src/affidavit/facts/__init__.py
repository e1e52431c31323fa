"""Typed rows over immutable facts: collections, pages, cursors, coverage, fact files."""
