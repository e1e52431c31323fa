"""What a session remembers from script to script: the results of earlier ones, and pinned code."""
