"""Targets that a plan can be printed for, one package each."""
