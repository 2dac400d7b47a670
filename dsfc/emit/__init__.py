"""From a plan to the text of a module, by a backend that is loaded by name."""

RUNTIMES = ("inside", "beside")
"""Where the functions stand that all modules share: in each, or in one file of their folder."""
