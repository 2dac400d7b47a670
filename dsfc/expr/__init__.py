"""Expressions over the closed table of primitives, and the bridge to SymPy."""
