"""What shall be measured: one protocol, a chain of phases, and the command each of them becomes."""
