"""Electron and JavaScript applications as typed, paged facts. No target code is run."""
