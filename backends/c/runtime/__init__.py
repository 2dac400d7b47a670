"""The header and the loader of kernels in C, which stand in modules as they are."""
