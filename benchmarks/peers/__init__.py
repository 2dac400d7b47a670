"""What emitted modules are compared with; each peer says where it comes from."""
