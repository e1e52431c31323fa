"""What monty does differently from Python, one module for each kind of difference."""
