"""The families of release protocols, one file each, and the catalogue of them."""
