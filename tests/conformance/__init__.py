"""One suite for every engine: what a script means, whichever engine runs it."""
