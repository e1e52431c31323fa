"""Graphs that another tool recovered and exported: the same collections and queries as for what is analysed here."""
