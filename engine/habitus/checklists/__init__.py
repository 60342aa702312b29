"""checklists."""
