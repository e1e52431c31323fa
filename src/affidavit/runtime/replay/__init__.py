"""Running again: a run once more from its log alone, and an earlier script with other values."""
