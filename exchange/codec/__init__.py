"""What is inside the exchanged files: text, binary, and the check of answers."""
