"""Channels Q(y|s,u), inputs first: what a person with record (s, u) reports.

    Channel
    ├── DenseChannel        any matrix Q[s, u, y]
    ├── IndependentChannel  S and U reported each by its own matrix            (IR)
    ├── ChoiceChannel       one block is reported: one's own or another        (GRR, SRR, GRR-CR)
    ├── SetChannel          a level for each pair of classes of s and of u      (large tables)
    └── UnaryChannel        every block reports or stays silent, independently (UE, UE-CR)

A choice or unary channel has a block for each s (or each cell). It is given by `own[s, u, z]`,
the law of symbol z in the block that the person belongs to, and `other[b, z]`, the law in the
blocks that the person does not belong to, which does not depend on the person. So neither the
(n_s n_u)² entries of the one nor the (n_u + 1)^n_s outputs of the other are built unless needed.

base         what every channel offers, and the kinds by the names that files know
dense, independent, choice, sets, unary   the five kinds
sum_laws     the distribution of a sum of independent variables, for unary channels
"""

from __future__ import annotations

from rldp.channel.base import (
    ANYONE,
    CHANNELS,
    Channel,
    Comparisons,
    IntegerParts,
    Sides,
    kind_of,
    register,
)
from rldp.channel.choice import ChoiceChannel
from rldp.channel.dense import DenseChannel
from rldp.channel.independent import IndependentChannel
from rldp.channel.sets import SetChannel
from rldp.channel.unary import UnaryChannel

__all__ = [
    "ANYONE",
    "CHANNELS",
    "Channel",
    "ChoiceChannel",
    "Comparisons",
    "DenseChannel",
    "IndependentChannel",
    "IntegerParts",
    "SetChannel",
    "Sides",
    "UnaryChannel",
    "kind_of",
    "register",
]
