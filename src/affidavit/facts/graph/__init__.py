"""Queries over directed graphs of facts: control flow of a function, calls between functions."""
