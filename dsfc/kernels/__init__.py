"""Kernels of the forms of scans, forward and backward, as programs of the kernel IR."""
