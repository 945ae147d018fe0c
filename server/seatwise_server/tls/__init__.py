"""TLS at the server's ports: the certificate and key that it shows, where they come from, and how they are renewed."""
