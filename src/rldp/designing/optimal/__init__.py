"""The optimal protocol for F itself: column generation over the cone of all private columns.

Files from the bottom up: `conditions` says in cones what makes a column private over F, `cuts` in
inequalities; `columns` finds the best one for given prices and pulls in what is not quite private;
`branching` bounds what any column can gain; `search` mixes columns, prices them and looks again.
"""
