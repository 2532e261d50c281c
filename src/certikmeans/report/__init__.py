"""What people see: progress, summary, pictures. Made from a `Result` and events alone."""
