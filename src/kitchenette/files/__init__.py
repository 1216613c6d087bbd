"""Model files: what can be stored, how it becomes JSON and arrays, and the file itself."""
