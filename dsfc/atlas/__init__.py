"""The graph of mixers: which are one function, under what conditions, from proofs alone."""
