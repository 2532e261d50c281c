"""Local search: seeding, Lloyd iterations, Kempe-chain moves."""
