"""Rows of data at the border: counted, taken by number, and checked once."""
