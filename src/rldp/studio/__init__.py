"""Studio: from a file to a proven protocol, released data and estimates, in a local browser.

A face on the package without mathematics of its own. `application` puts the parts together:
`guard` lets no stranger in, `session` holds in memory what was loaded and designed, `jobs` run
what takes time, `steps` answer the page, and `page` is the page.
"""
