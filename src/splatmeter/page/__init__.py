"""The page that people send to each other: a model, its cameras and our viewer in one HTML file."""
