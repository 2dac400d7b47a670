"""What stands in modules with kernels in C as it is: the header of kernels, and what runs them."""
