"""System to System: gauge, adjoint, normal form, composition, each with its record."""
