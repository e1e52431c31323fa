"""How what came of a script is told to an agent: bounded, with what was cut and what reaches the whole."""
