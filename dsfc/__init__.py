"""A compiler for sequence mixers: from a `.dsf` text to a module that trains."""
