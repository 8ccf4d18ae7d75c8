"""Tuning to this machine: the cost of passes, acceptance rates of drafts, and the policy that weighs both."""
