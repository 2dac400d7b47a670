"""A second checker of certificates, in another style and without a line of the kernel.

It parses the JSON text by itself and computes with FLINT: a value is a fraction in lowest terms,
tokens have absolute numbers, generators are looked up by the values of their arguments. It imports
nothing of dsfc.
"""

from second_checker.verdict import Refused, Silent, second_check

__all__ = ["Refused", "Silent", "second_check"]
