"""The gRPC door: decodes a request, authorizes the caller, calls the service, encodes the response."""
