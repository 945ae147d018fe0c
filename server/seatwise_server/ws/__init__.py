"""The WebSocket door for bots: the same streams as over gRPC, for languages without gRPC, behind strict proxies, and for speed."""
