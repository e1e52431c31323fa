"""What datasets offer as operations: their collections and the graphs in them."""
