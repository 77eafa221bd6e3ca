"""Conformance suite: checks of every installed extension, for authors of extensions.

It finds the extensions of your own distribution by their entry points (see
`neuralrace.extensions.registry`), so there is nothing to configure. The extra
`neuralrace[testing]` installs the pytest that it needs:

    pytest --pyargs neuralrace.testing

The declarations of metrics, solutions, observables and figures are checked. Metrics, solutions and
observables are also computed, wherever one of the small runs in `cells` meets their requirements.
Datasets, initialisers, gating schemes, pairs and optimisers train a small network, with the
parameters in the `example` of their class. `-k NAME` checks a single extension.

`known_answers` checks the numerical libraries. Tests of the library itself are in `tests/`.
"""
