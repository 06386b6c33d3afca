"""Files that appear whole or not at all, and JSON files.

atomic_files  files and folders
json_files    JSON
"""
