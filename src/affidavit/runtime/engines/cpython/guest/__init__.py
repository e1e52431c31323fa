"""The sandbox side: what runs in the zygote and its locked children. Standard library only; never used in the host."""
