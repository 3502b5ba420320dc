"""Collect, run in isolation, mark, report."""
