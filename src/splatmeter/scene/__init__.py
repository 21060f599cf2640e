"""Where the cameras stood and what they saw: views, points, split, and the order of training."""
