"""What was seen: values, canonical form, identity, records. Imports nothing above errors."""
