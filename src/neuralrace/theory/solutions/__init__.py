"""Theory beside an ensemble: what each theory predicts from its own initial weights.

A solution is a function of a `Problem`, never of a trajectory, and gives arrays by name. Its
declaration says what it needs of an ensemble and which variables of `theory.nc` it gives; variables
whose dimensions begin with `solution` may come from several. Nothing is fitted.
"""
