"""The fused plan: what the kernel of each scan computes where it loads and where it stores."""
