"""How fast rldp is, each time against a peer or a limit measured in the same run."""
