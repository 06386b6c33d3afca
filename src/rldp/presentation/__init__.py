"""What people read and look at: sentences and pictures, made from finished results."""
