"""The forms of a plan's kernels: a file per form, whose row says all that the plan knows of it."""
