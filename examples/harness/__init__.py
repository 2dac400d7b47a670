"""What the examples share: the run of a comparison, its record, and the style of its pictures."""
