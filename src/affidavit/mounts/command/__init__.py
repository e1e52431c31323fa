"""Programs of the command line as namespaces below `df.tool`. No shell is involved anywhere."""
