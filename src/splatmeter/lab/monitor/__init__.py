"""Memory seen from outside: the process tree, the card, and what spills over into shared memory."""
