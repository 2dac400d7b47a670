"""Lowering of a typed mixer to a system."""
