"""Directories that others may write to: opened, watched, locked and removed safely."""
