"""The sandboxes that run scripts, behind one Protocol."""
