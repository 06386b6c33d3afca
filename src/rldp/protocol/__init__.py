"""A protocol as users hold it, and as it stands in a file.

files             load, verify, sign: every part of a file checked, and ε proved again
release_protocol  the designed and proved protocol: release, estimate, save
public_protocol   the part of it that clients need, without the sample
guarantees        what is promised over which set, with its certificate
documents         a file's format, version and hash; the parts of a protocol ⇄ JSON
signatures        Ed25519 signatures, made and checked
"""
