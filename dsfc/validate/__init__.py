"""An emitted module against its definition; the only package that imports torch."""
