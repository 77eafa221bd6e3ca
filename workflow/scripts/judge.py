"""Judges every claim and writes the table."""
