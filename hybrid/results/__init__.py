"""What a job leaves: record, result folder, forms, trace."""
