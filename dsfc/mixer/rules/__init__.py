"""Context conditions on a mixer, one per module."""
