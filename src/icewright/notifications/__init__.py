"""Tell owners and operators: messages, grouping, delivery."""
