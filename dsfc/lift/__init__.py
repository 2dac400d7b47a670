"""Lifts PyTorch modules into specs: traces a module, recognises what it computes, writes it down."""
