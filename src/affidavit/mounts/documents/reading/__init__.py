"""Files as text in blocks, each with its place: a line, or a page."""
