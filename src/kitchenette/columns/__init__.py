"""Columns of rows before a map: scaled, filled and encoded, as frozen values."""
