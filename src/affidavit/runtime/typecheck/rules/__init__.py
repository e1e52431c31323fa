"""What counts as proof of an error: rules on the tree (`own`, `awaiting`, `inputs`) and over the checker (`policy`)."""
