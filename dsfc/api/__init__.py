"""What a user asks for, one module each: load, compile, check, decide, convert and validate."""
