"""What the product costs beside named peers and limits: `make bench`, or `python -m benchmarks NAME ...`."""
