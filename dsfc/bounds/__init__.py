"""Certified bounds on how far apart the outputs of two mixers are, on a declared domain.

`domain` says which inputs, parameters and lengths a bound is about. `ranges`, `magnitudes`, `gaps`,
`gap_functions`, `gap_sums` and `means` are the rules; `rules` lists them. `search` builds a chain
of inequalities by rules, `chain` checks one step by step, `witness` looks for a point that is
farther apart, and `decide` puts the three together.
"""
