"""The runtime section that the modules of all backends share, kept as Python files."""
