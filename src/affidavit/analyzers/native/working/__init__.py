"""The processes that read and decode a binary, and what they tell."""
