"""Every experiment of the paper's section 8, and what lies beyond it.

tables       tables to experiment on: Jeffreys draws and Adult
task         one protocol on some tables at some ε; what a process, or a cluster, computes
store        finished tasks, one small file each, and the processes that finish the others
curves       figures made of panels of curves, and their rows
figure       what a figure is
figures      one short file for each figure of the paper
plots        rows → pictures; nothing is computed there
claims       what the paper says of its figures, each with a verdict from the rows
index_pages  the index, in Markdown and HTML
run          all steps in order
"""
