"""Which names a source file exports, and where."""
