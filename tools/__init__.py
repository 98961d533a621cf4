"""Programs that look at the project itself."""
