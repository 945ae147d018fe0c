package main

import (
	"context"

	pb "seatwise.example/gen/seatwisev1"
)

// link is the stream to one referee. It carries all seats of the bot there.
type link struct {
	bot    *bot
	to     endpoint
	cancel context.CancelFunc
	outbox chan *pb.PlayRequestItem // nil while the stream is down: seats sit down again when it is back
}

func (l *link) send(item *pb.PlayRequestItem) {
	select {
	case l.outbox <- item:
	default: // down or full: nothing is lost, because seats repeat what was not confirmed
	}
}

// runOnce opens the stream, sits down in every seat, and reads until the stream ends.
func (l *link) runOnce(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	connection, ctx, err := l.bot.wire.connect(ctx, l.to)
	if err != nil {
		return err
	}
	defer connection.Close()
	stream, err := pb.NewPlayServiceClient(connection).Play(ctx)
	if err != nil {
		return err
	}
	go write(ctx, stream, l.open())
	defer l.close()
	for {
		response, err := stream.Recv()
		if err != nil {
			return err
		}
		l.dispatch(response)
	}
}

// write is the only writer of a stream.
func write(ctx context.Context, stream pb.PlayService_PlayClient, outbox <-chan *pb.PlayRequestItem) {
	for {
		select {
		case <-ctx.Done():
			return
		case item := <-outbox:
			if stream.Send(&pb.PlayRequest{Items: []*pb.PlayRequestItem{item}}) != nil {
				return // the reader gets the reason
			}
		}
	}
}

func (l *link) open() <-chan *pb.PlayRequestItem {
	l.bot.mutex.Lock()
	defer l.bot.mutex.Unlock()
	l.outbox = make(chan *pb.PlayRequestItem, 256)
	for _, seat := range l.bot.seats {
		if seat.link == l {
			seat.sitDown()
		}
	}
	return l.outbox
}

func (l *link) close() {
	l.bot.mutex.Lock()
	defer l.bot.mutex.Unlock()
	l.outbox = nil
}

func (l *link) dispatch(response *pb.PlayResponse) {
	l.bot.mutex.Lock()
	defer l.bot.mutex.Unlock()
	for _, item := range response.Items {
		if ping := item.GetPing(); ping != nil {
			l.send(&pb.PlayRequestItem{Action: &pb.PlayRequestItem_Pong{Pong: &pb.Pong{Number: ping.Number}}})
		} else if seat := l.bot.seats[seatKey{item.Match, item.Seat}]; seat != nil {
			seat.handleItem(item)
		}
	}
}
