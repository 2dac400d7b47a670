"""Lifts PyTorch modules into specs: traces one, recognises what it computes, writes it down."""
