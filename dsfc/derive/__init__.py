"""Lowering of a typed mixer to a system: sums over the past become states, updates become terms."""
