"""What is compared: every solver behind one protocol."""
