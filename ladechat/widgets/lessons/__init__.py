"""What a lesson shows beside a running engine."""
