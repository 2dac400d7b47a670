"""Proofs that kernels of the kernel IR compute the recurrences of their scans: `prove.prove`."""
