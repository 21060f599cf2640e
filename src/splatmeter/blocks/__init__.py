"""A scene in overlapping blocks: how it is divided, who trains them, and how they are joined again."""
