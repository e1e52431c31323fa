"""The composition root: opens a workspace, wires the rooms, owns lifetimes."""
