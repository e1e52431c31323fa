"""Files that become datasets. Analyzers do not know each other, nor mounts."""
