"""What the modules of all backends share: the runtime section, kept as Python files."""
