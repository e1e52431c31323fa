"""The native analyzer: machine code in, functions, control flow, calls, strings and references out."""
