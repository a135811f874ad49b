"""Plans, what they are made from, and what people ask for."""
