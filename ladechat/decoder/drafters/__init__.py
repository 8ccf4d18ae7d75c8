"""Who proposes tokens: one drafter a file."""
