"""Test doubles: a server that does what a test says, a table without network and Redis, certificates, a virtual clock."""
