"""The Dynamical Systems Form in index form: the value that every later stage reads."""
