"""Figures on layer dynamics."""
