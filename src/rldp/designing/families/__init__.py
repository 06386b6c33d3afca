"""The closed-form protocols of the paper, one module for each family.

base            the problem that a family solves
layers          further levels beside ε over F
noise_odds      how much noise on U a share of ε requires
grr, srr, ir, grr_cr, ue, ue_cr   the families
unary_encoding  what UE and UE-CR share
subset_law      the information in random subsets, tabulated
"""
