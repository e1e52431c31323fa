"""Commands about what was recorded: records, bundles, journals, unknowns, and whether they hold."""
