"""Studio: from a file to a proven protocol, released data and estimates, in a local browser.

It computes nothing itself: every number comes from the package.

serving      the server, on the loopback interface alone
guard        refuses requests of other sites
application  routes from requests to steps
choices      what was chosen on the page, checked
limits       what the page may ask for
steps        the answers to the six steps of the page
answers      answers and errors as JSON
session      files, tables, sets and designs in memory
uploads      uploaded files → Arrow tables
kept         a cache with a limited size
jobs         long work: progress, stop, end
workers, worker, tasks   searches, each in a process of its own
outlook      what estimates will look like
promise      the audited ε in sentences
code         the same steps as Python and as commands
report       all results as one HTML file
page         the page itself
"""
