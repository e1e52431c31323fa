"""The engines: how each is opened so that it can only read, and what its catalogue says."""
