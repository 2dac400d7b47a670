"""The shipped specs, as data: one mixer or modifier per file, named like the file."""
