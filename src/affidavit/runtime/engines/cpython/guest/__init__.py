"""The sandbox side: runs in the zygote and its locked children. Standard library only; nothing here runs in the host."""
