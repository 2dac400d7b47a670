"""The closed table of primitives, scalar expressions over it, and the bridge to SymPy."""
