// A whole Seatwise bot: it attends a queue, plays UGO! over gRPC, and survives lost links. Your own ideas go into strategy.go.
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	address := flag.String("address", "localhost:7433", "the server: host:port, https://host:port or http://host:port")
	queues := flag.String("queue", "casual", "the queues to wait in, with commas between them; none for matches that name the bot")
	maxMatches := flag.Int("max-matches", 4, "play at most so many matches at once")
	matches := flag.Int("matches", 0, "stop after so many matches; 0 means never")
	caFile := flag.String("tls-ca", "", "a file with the CAs to trust, or the server's own certificate")
	insecure := flag.Bool("insecure", false, "let the token travel in clear to another machine")
	flag.Parse()

	token := strings.TrimSpace(os.Getenv("SEATWISE_TOKEN"))
	if token == "" {
		log.Fatal("set SEATWISE_TOKEN to the bot's token")
	}
	wire, err := newWire(token, *caFile, *insecure)
	if err != nil {
		log.Fatal(err)
	}
	b := &bot{
		wire: wire, lobby: readAddress(*address, nil), queues: strings.FieldsFunc(*queues, isComma),
		maxMatches: int32(*maxMatches), matches: *matches,
		seats: map[seatKey]*seat{}, past: map[seatKey]bool{}, links: map[endpoint]*link{}, epochs: map[string]int64{},
		end: make(chan error, 1),
	}
	go drainOnSignal(b)
	if err := b.run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func isComma(letter rune) bool { return letter == ',' }

// drainOnSignal finishes the open matches after the first Ctrl-C, and leaves at once after the second.
func drainOnSignal(b *bot) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	<-signals
	b.drain()
	<-signals
	os.Exit(1)
}
