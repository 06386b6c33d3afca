"""What any channel promises over any F, and the risk for a person, in numbers."""
