"""The documentation, and the programs that write parts of it."""
