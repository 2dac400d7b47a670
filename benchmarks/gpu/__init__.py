"""Kernels on a GPU: right, then fast, then how far from what the memory allows; see README.md."""
