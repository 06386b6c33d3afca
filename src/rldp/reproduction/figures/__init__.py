"""The figures of the paper, in its order."""

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
