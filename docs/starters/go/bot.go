package main

import (
	"context"
	"log"
	"sync"
	"time"

	pb "seatwise.example/gen/seatwisev1"
)

// bot attends the lobby and keeps a link to each referee at which it has seats.
type bot struct {
	wire       *wire
	lobby      endpoint
	queues     []string
	maxMatches int32
	matches    int // stop after so many; 0 means never

	mutex      sync.Mutex // guards everything below, and the seats
	seats      map[seatKey]*seat
	past       map[seatKey]bool
	links      map[endpoint]*link
	epochs     map[string]int64
	attendance pb.LobbyService_AttendClient // nil while the lobby is not reached
	finished   int
	isDraining bool
	isDrained  bool // whether the lobby has confirmed that it offers no more seats
	end        chan error
	ctx        context.Context
}

// run attends and plays until all is drained. It returns an error that no other attempt can mend.
func (b *bot) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b.ctx = ctx
	go func() { b.stop(keepOpen(ctx, "lobby", true, b.attendOnce)) }()
	return <-b.end
}

func (b *bot) stop(err error) {
	select {
	case b.end <- err:
	default: // it stops already
	}
}

// drain takes no more seats, finishes the open matches, and ends.
func (b *bot) drain() {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	log.Printf("draining: %d matches are open", len(b.seats))
	b.isDraining = true
	b.sendLimit()
}

// limit returns how many matches at once the bot takes now.
func (b *bot) limit() int32 {
	switch {
	case b.isDraining:
		return 0
	case b.matches > 0:
		return min(b.maxMatches, int32(max(0, b.matches-b.finished)))
	}
	return b.maxMatches
}

func (b *bot) sendLimit() {
	if b.attendance != nil {
		b.attendance.Send(&pb.AttendRequest{Queues: b.queues, MaxMatches: b.limit()}) // the reader gets the reason of a failure
	}
}

// attendOnce attends the lobby until the stream ends.
func (b *bot) attendOnce(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	connection, ctx, err := b.wire.connect(ctx, b.lobby)
	if err != nil {
		return err
	}
	defer connection.Close()
	stream, err := pb.NewLobbyServiceClient(connection).Attend(ctx)
	if err != nil {
		return err
	}
	b.setAttendance(stream)
	defer b.setAttendance(nil)
	for {
		response, err := stream.Recv()
		if err != nil {
			return err
		}
		b.handleResponse(response)
	}
}

func (b *bot) setAttendance(stream pb.LobbyService_AttendClient) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.attendance = stream
	b.sendLimit()
}

func (b *bot) handleResponse(response *pb.AttendResponse) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	switch event := response.Event.(type) {
	case *pb.AttendResponse_Welcome:
		b.isDrained = b.isDraining && event.Welcome.MaxMatches == 0 && event.Welcome.PendingSeats == 0
		b.endIfDone()
	case *pb.AttendResponse_Offer:
		b.handleOffer(event.Offer)
	case *pb.AttendResponse_Closed:
		b.handleClosed(seatKey{event.Closed.Match, event.Closed.Seat})
	case *pb.AttendResponse_TakenOff:
		log.Printf("off %s: %s", event.TakenOff.Queue, event.TakenOff.Reason)
	}
}

// handleOffer takes a seat, or moves it to the referee that has taken its match over.
func (b *bot) handleOffer(offer *pb.SeatOffer) {
	key := seatKey{offer.Match, offer.Seat}
	open := b.seats[key]
	if b.past[key] || offer.Epoch < b.epochs[offer.Match] || (open != nil && offer.Epoch == open.offer.Epoch) {
		return
	}
	if open == nil {
		log.Printf("seated in %s at seat %d against %v", offer.Match, offer.Seat, offer.Bots)
		open = newSeat(b, offer)
		b.seats[key] = open
	}
	b.epochs[offer.Match] = offer.Epoch
	left := open.link
	open.offer, open.link = offer, b.linkTo(offer.Address)
	open.sitDown()
	b.endLinkWithoutSeats(left)
}

func (b *bot) linkTo(address string) *link {
	to := b.lobby
	if address != "" {
		to = readAddress(address, &b.lobby)
	}
	if b.links[to] == nil {
		ctx, cancel := context.WithCancel(b.ctx)
		opened := &link{bot: b, to: to, cancel: cancel}
		b.links[to] = opened
		go func() {
			if err := keepOpen(ctx, "referee "+to.target, false, opened.runOnce); err != nil {
				b.stop(err)
			}
		}()
	}
	return b.links[to]
}

// handleClosed asks the referee how the match ended, because its word may have been lost.
func (b *bot) handleClosed(key seatKey) {
	if open := b.seats[key]; open != nil {
		open.later(time.Second, open.sitDown)
		open.later(30*time.Second, func() { b.closeSeat(open) })
	}
}

func (b *bot) closeSeat(closed *seat) {
	delete(b.seats, closed.key)
	b.past[closed.key] = true
	b.endLinkWithoutSeats(closed.link)
	b.isDraining = b.isDraining || (b.matches > 0 && b.finished >= b.matches)
	b.sendLimit()
	b.endIfDone()
}

func (b *bot) endLinkWithoutSeats(left *link) {
	for _, open := range b.seats {
		if open.link == left {
			return
		}
	}
	if left != nil && b.links[left.to] == left {
		delete(b.links, left.to)
		left.cancel()
	}
}

func (b *bot) endIfDone() {
	if b.isDrained && len(b.seats) == 0 {
		b.stop(nil)
	}
}
