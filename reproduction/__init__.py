"""The experiments of the five papers, each run by one command.

``python -m reproduction`` lists them; README.md in this folder says how to run and to add one.
"""
