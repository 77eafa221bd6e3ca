"""Formulas of the theory: closed forms and differential equations, as pure functions of arrays.

Solutions for a cell are in `solutions`, rectified linear networks in `reln`; simulation belongs to
`neuralrace.training`. Where to look for a formula:

- Deep linear networks: `modes` (one singular mode), `tied`, `two_layer` (exact), `gradient_flow`,
  `pace` (learning rate, init scale and training time).
- Layer dynamics: `balance` (conserved imbalance), `growth_bound`, `linearisation` (of ReLU nets).
- Gated linear networks: `gated_flow`, `reduction` (the neural race reduction), `routing`,
  `pathway_modes` (joint learning), `contextual` (closed form), `zero_shot` (errors of
  untrained pairs), `ridge` (baseline).
- XoR in ReLU networks: `xor`, `xor_margin`. Patterns of ReLU gates: `gate_patterns`.
- Receptive fields: `frozen_gates`, `refreshed_gates`, `gating_loss`, `best_gates`, `half_spaces`,
  `ring`, `mean_field`, `printed_equations` (equations of the notes that do not hold).
- Any network, linearised in its weights: `tangent_kernel` (baseline). Layered networks with any
  activation: `layered`.
- Numerical integration for all of them: `integration`.
"""
