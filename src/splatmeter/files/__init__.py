"""Files as all parts of the package write, lock and hash them, and the parts of the PLY format they share."""
