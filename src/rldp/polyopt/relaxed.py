"""Large tables: the blocks are mixed one by one, and their mixtures are joined afterwards.

Where nobody is s* (τ = 1) a column is any product of vertices. Let every block mix its vertices by
itself, with one total weight t for all: the masses of the products are then taken to be equal, which
keeps -p log(p/t) with p their sum, a concave function held by tangents. That programme is an upper
bound with n_s n_u + n_s + 1 rows; joining the mixtures with the heavy vertices of one block beside
the light ones of the next gives products of nearly equal mass, so hardly anything is lost. Columns
with τ > 1 enter as they are.

The bound is certified for any prices α: see `optimise.products` for the multiplier λ. Between two
τ's a star's box is widest at the upper and the others' at the lower, which bounds all τ between.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from rldp.optimise.master import Programme
from rldp.optimise.products import Branches, Lists, best_products
from rldp.polyopt.blocks import Block
from rldp.polyopt.boxes import Box, box

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
