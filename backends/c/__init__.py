"""The C target: kernels of the kernel IR as plain C, compiled where they run."""
