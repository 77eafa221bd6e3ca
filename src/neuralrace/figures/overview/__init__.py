"""All papers together."""
