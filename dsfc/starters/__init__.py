"""Specs to start from, as data: one for each form of the language, explained in comments."""
