"""A protocol as users hold it, and as it stands in a file.

loading           files to protocols: every part checked, and ε proved again
release_protocol  what was designed and proved: release, estimate, save
documents         protocols ⇄ JSON documents
content           a file's format, version, hash and signatures
signatures        Ed25519 signatures, checked
signing           Ed25519 signatures, made
"""
