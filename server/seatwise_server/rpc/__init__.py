"""The doors: gRPC services, thin over the lobby, the referee and the store."""
