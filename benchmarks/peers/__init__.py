"""The same work as other algorithms and libraries do, side by side with theirs."""
