"""The trusted kernel: what a claim says, and whether its certificate shows it.

The kernel reads a certificate with `json`, computes with `fractions`, and knows of the rest of dsfc
the reader of System values and the primitive table only; an import contract holds it to that. The
kernel searches for nothing and trusts nothing that the prover computed: both systems are unrolled
again from their values, multipliers are recomputed, witnesses are executed. Prover and kernel share
values: claims, polynomials, and a system at one token. Rules beyond one definition, a witness and a
linear invariant are optional and stand in `dsfc.trusted.rules`.
"""
