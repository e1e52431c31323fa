"""Parsing in processes that can be killed: source bytes in, facts out."""
