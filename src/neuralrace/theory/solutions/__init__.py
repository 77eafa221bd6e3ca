"""Theory solved for a cell: what each theory predicts from the initial weights of the run.

A solution is a function of a `Problem` (data, initial weights and recorded times) that returns
arrays by variable. It never reads a trajectory and fits nothing. Its declaration names the
requirements on the ensemble and the variables of `theory.nc`. Several solutions may share the
variables that have the dimension `solution`. The formulas stand one level up, in
`neuralrace.theory`.
"""
