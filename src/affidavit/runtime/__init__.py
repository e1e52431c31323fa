"""How a script runs: the broker, sessions, the check, engines, the answer."""
