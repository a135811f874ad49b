"""What all plans have in common: eligibility, checks, estimates, repository."""
