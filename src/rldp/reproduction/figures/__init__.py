"""The figures of the paper, in its order.

Each module has the label of its figure in the paper: opt, synthexp, param, irvsgrrcr, changen,
changealpha, robustuti, adult, synthadult.
"""

from __future__ import annotations

from rldp.reproduction.figure import Figure
from rldp.reproduction.figures import (
    adult,
    changealpha,
    changen,
    irvsgrrcr,
    opt,
    param,
    robustuti,
    synthadult,
    synthexp,
)

_ALL: tuple[Figure, ...] = (
    opt.figure,
    *synthexp.figures,
    param.figure,
    irvsgrrcr.figure,
    changen.figure,
    changealpha.figure,
    robustuti.figure,
    adult.figure,
    synthadult.figure,
)
FIGURES = {figure.name: figure for figure in _ALL}
