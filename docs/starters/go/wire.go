package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

const (
	firstWait   = 100 * time.Millisecond
	longestWait = 5 * time.Second
)

// errClearText ends the bot: a repeat cannot help.
var errClearText = errors.New("the token would travel in clear; use https://, or --insecure")

// endpoint is an address without its scheme.
type endpoint struct {
	target string
	isTLS  bool
}

// readAddress reads host:port, https://host:port or http://host:port. Without a scheme an offer's address is as the lobby's.
func readAddress(address string, lobby *endpoint) endpoint {
	if target, found := strings.CutPrefix(address, "https://"); found {
		return endpoint{target, true}
	}
	if target, found := strings.CutPrefix(address, "http://"); found {
		return endpoint{target, false}
	}
	if lobby != nil {
		return endpoint{address, lobby.isTLS}
	}
	return endpoint{address, !isThisMachine(address)}
}

func isThisMachine(target string) bool {
	host, _, err := net.SplitHostPort(target)
	if err != nil {
		return false
	}
	address := net.ParseIP(host)
	return host == "localhost" || (address != nil && address.IsLoopback())
}

// wire opens connections that may carry the token.
type wire struct {
	token     string
	trusted   *x509.CertPool // nil means the CAs of the system
	clearText bool           // whether the token may travel in clear to another machine
}

func newWire(token, caFile string, clearText bool) (*wire, error) {
	if caFile == "" {
		return &wire{token, nil, clearText}, nil
	}
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return nil, err
	}
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate", caFile)
	}
	return &wire{token, trusted, clearText}, nil
}

// connect returns a connection of its own for one stream, and the context that carries the token.
func (w *wire) connect(ctx context.Context, to endpoint) (*grpc.ClientConn, context.Context, error) {
	transport := insecure.NewCredentials()
	if to.isTLS {
		transport = credentials.NewTLS(&tls.Config{RootCAs: w.trusted}) // checks the host's name too
	} else if !w.clearText && !isThisMachine(to.target) {
		return nil, nil, errClearText
	}
	alive := keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 5 * time.Second}
	connection, err := grpc.NewClient(to.target, grpc.WithTransportCredentials(transport), grpc.WithKeepaliveParams(alive))
	return connection, metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+w.token), err
}

// keepOpen runs a stream again whenever it ends, until it ends for good or ctx does.
func keepOpen(ctx context.Context, name string, isLobby bool, runOnce func(context.Context) error) error {
	for failures := 0; ; failures++ {
		began := time.Now()
		err := runOnce(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if isFinal(err, isLobby) {
			return fmt.Errorf("%s: %w", name, err)
		}
		if time.Since(began) > longestWait {
			failures = 0
		}
		log.Printf("%s: %v; coming again", name, err)
		pause(ctx, waitAfter(err, failures))
	}
}

// isFinal says whether another attempt must not be made: the table "When to reconnect" of docs/protocol.md.
func isFinal(err error, isLobby bool) bool {
	if errors.Is(err, errClearText) || reasonOf(err).GetReason() == "REPLACED" {
		return true
	}
	switch status.Code(err) {
	case codes.Unauthenticated, codes.PermissionDenied:
		return true
	case codes.NotFound, codes.InvalidArgument, codes.OutOfRange, codes.AlreadyExists, codes.FailedPrecondition, codes.Unimplemented:
		return isLobby
	}
	return false
}

// reasonOf returns the reason that the server gave, or nil.
func reasonOf(err error) *errdetails.ErrorInfo {
	for _, detail := range status.Convert(err).Details() {
		if info, found := detail.(*errdetails.ErrorInfo); found {
			return info
		}
	}
	return nil
}

// waitAfter returns a random time below a bound that doubles, after the time that a full server asks for.
func waitAfter(err error, failures int) time.Duration {
	bound := min(longestWait, firstWait<<min(failures, 10))
	asked, _ := strconv.ParseFloat(reasonOf(err).GetMetadata()["retry_after"], 64)
	return time.Duration(asked*float64(time.Second)) + rand.N(bound)
}

func pause(ctx context.Context, wait time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(wait):
	}
}
