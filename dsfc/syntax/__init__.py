"""Text to syntax tree and back: the only package that knows the grammar."""
