"""The independent checker of proofs: what a claim says, and whether its certificate shows it.

It reads a certificate with `json`, computes with `fractions`, and knows of the rest of dsfc the
reader of System values and the primitive table only; an import contract holds it to that. It
searches for nothing and trusts nothing that the prover computed: both systems are unrolled again
from their values, multipliers are recomputed, witnesses are executed.
"""
