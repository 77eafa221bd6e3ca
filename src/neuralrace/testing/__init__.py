"""What everything that can be configured must do, tried on all of it that is installed.

A distribution of your own, which names its packages by entry points (see
`neuralrace.extensions.registry`), is covered without a line here:

    pip install neuralrace[conformance]
    pytest --pyargs neuralrace.testing

Metrics, solutions, observables and figures are held to their declarations; all but figures are
computed where one of the small runs in `cells` meets their needs. Datasets, laws, gating schemes,
pairs and optimisers are trained on or with, by the `example` of their class. `-k NAME` tries a
single one.
"""
