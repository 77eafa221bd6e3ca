"""Kinds of networks: what each can be trained on, starts from and costs, and its task's name.

Reading a configuration imports them: JAX and what needs it stay in `models` and `training`.
"""
