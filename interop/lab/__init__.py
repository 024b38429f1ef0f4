"""The laboratory: two hosts on one machine, a bad link between them, sound cards and a judge. Linux, root."""
