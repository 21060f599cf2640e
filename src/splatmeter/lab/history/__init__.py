"""A lab's figures over sessions and revisions: what was measured, and what may be compared with what."""
