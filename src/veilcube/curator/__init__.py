"""The private side: tables, exact counts, the ledger, noise and mechanisms."""
