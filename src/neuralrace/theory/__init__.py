"""Closed forms and differential equations of learning, as pure functions of arrays."""
