"""Context conditions on a mixer, one per file."""
