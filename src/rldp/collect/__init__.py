"""Collecting: people answer on their own device, and only the randomised report leaves it.

opening         where a collection is, with its protocol inside
questions, xlsform, form_texts   what the form asks, and in which words
invitations     single-use links
limits          how much is taken at once
serving         the server
http_protocol   HTTP requests, within limits
guard           which requests are answered
application     routes
intake          POST of reports
submissions     the JSON of a request, checked
report_codes    the text of a report ⇄ the bytes that are stored
writer          reports in groups, one transaction each
store           what every store offers
sqlite_store, postgres_store   the two stores
metrics         counts for Prometheus
figures         what the operator sees
counted         a store → an estimate
forgeries       reports that the protocol cannot have drawn
exporting       a store → a file
"""
