"""The suite's own peer, which sends what it is told to, and peers that share no code with it."""
