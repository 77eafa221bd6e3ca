"""How extensions are declared and found: configuration models, registry, source reading."""
