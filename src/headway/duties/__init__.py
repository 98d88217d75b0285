"""What some process must do for all, each a small loop: rescue, expire, open gates, sweep, prune, vacuum."""
