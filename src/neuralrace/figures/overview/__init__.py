"""All papers together."""

PAPERS = {
    "deep_linear": "Exact solutions",
    "layer_dynamics": "Layer Dynamics",
    "localization": "Localisation notes",
    "make_haste": "Make Haste Slowly",
    "neural_race": "Neural Race",
}
"""Short titles of the papers."""
