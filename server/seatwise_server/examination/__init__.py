"""Examines bots over their own streams, and signs what it finds: the certificate of a version of a bot."""
