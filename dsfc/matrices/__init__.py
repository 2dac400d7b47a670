"""The matrices Λ, B, C, D and Φ of a System: explicit, in Kronecker form, as text and LaTeX."""
