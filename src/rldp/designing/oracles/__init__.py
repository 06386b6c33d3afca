"""Oracles: where columns come from that would make a protocol better.

What a column brings at the prices of a master (`prices`) is a convex function of the column. An
oracle is given columns to begin with and answers with private ones that bring more, or with none.
`designing.rounds` asks the oracles that it was given, one after another, the cheap ones first:

- `flips` changes one entry at a time. It needs no solver, and is stuck where two entries would have
  to change together.
- `sorting` knows the best column of PolyOpt's cone for a linear objective, and the best one of
  plain local differential privacy that single changes reach.
- `cones` knows the best of all private columns for a linear objective, by a conic programme.
- `boxes` is branch and bound: on small tables it knows the best of all, or what none exceeds.
"""
