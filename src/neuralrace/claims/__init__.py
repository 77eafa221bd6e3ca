"""What the papers claim, judged from metrics files alone."""
