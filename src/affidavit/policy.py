"""May it be called: effects, grants, budgets. Pure functions."""
