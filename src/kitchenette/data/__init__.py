"""User data: slicing, sampling and validation of rows."""
