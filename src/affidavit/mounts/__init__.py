"""Outside sources that become namespaces. Mounts do not know each other, nor analyzers."""
