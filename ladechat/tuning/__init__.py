"""How much is worth drafting here: what passes cost, how often drafts are right, and the policy that weighs both."""
