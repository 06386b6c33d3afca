"""A protocol as users hold it, and as it stands in a file.

loading           files to protocols: every part checked, and ε proved again
release_protocol  the designed and proved protocol: release, estimate, save
public_protocol   the part of it that clients need, without the sample
guarantees        what is promised over which set, with its certificate
documents         protocols ⇄ JSON documents
content           a file's format, version, hash and signatures
signatures        Ed25519 signatures, checked
signing           Ed25519 signatures, made
"""
