"""Certified bounds on how far apart the outputs of two mixers are, on a declared domain.

`domain` says which inputs, parameters and lengths a bound is about. `ranges`, `sizes`, `gaps`,
`sums` and `means` are the rules; `rules` lists them. `search` builds a chain of inequalities from
rules, `check` replays a chain step by step, `witness` looks for a point that is farther apart, and
`decide` puts the three together. `rounding` is about emitted modules: what floating-point numbers
lose in one mode.
"""
