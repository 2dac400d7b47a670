"""The structure of a system, read off its expressions."""
