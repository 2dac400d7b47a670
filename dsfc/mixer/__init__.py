"""The typed mixer: names bound, bases merged, shapes and fields inferred."""
