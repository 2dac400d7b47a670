"""Certified bounds on the rounding errors of emitted modules, before or while they run.

`enclosure` is a tensor that knows where its exact entries lie and how far computed ones may be off.
`interpret` runs a module on such tensors: every operator of PyTorch that the module calls has a
rule, or the answer is *unknown*. `arithmetic`, `functions`, `discs`, `products`, `attention` and
`moves` are the rules, `units` the constants of dtypes that they assume. `analyse` bounds a call
and `report` prints it.
"""
