package main

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"log"
	"time"

	pb "seatwise.example/gen/seatwisev1"
)

// seatKey names a seat of a match.
type seatKey struct {
	match string
	seat  int32
}

// seat is one seat of the bot, from the offer to the end of the match. The bot's mutex guards it.
type seat struct {
	bot     *bot
	key     seatKey
	offer   *pb.SeatOffer
	link    *link
	nonce   []byte         // stays the same over all links
	receipt []byte         // the newest that the referee sent
	asked   int32          // the prompt that is being thought about or answered
	answer  *pb.SubmitMove // the answer to it, until the referee has confirmed it
	moves   int
}

func newSeat(b *bot, offer *pb.SeatOffer) *seat {
	nonce := make([]byte, 32)
	rand.Read(nonce)
	return &seat{bot: b, key: seatKey{offer.Match, offer.Seat}, offer: offer, nonce: nonce}
}

// sitDown sits down, or again after the link was lost. The answer is the whole view.
func (s *seat) sitDown() {
	s.send(&pb.PlayRequestItem{Action: &pb.PlayRequestItem_Sit{Sit: &pb.Sit{Nonce: s.nonce, Receipt: s.receipt}}})
}

func (s *seat) send(item *pb.PlayRequestItem) {
	item.Match, item.Seat = s.key.match, s.key.seat
	s.link.send(item)
}

func (s *seat) sendAnswer() {
	if s.answer != nil {
		s.send(&pb.PlayRequestItem{Action: &pb.PlayRequestItem_SubmitMove{SubmitMove: s.answer}})
	}
}

// handleItem handles an item of the referee. Items of an earlier owner of the match are dropped.
func (s *seat) handleItem(item *pb.PlayResponseItem) {
	if item.Epoch > 0 && item.Epoch < s.bot.epochs[s.key.match] {
		return
	}
	s.bot.epochs[s.key.match] = max(item.Epoch, s.bot.epochs[s.key.match])
	switch event := item.Event.(type) {
	case *pb.PlayResponseItem_Update:
		s.handleUpdate(event.Update)
	case *pb.PlayResponseItem_MoveAccepted:
		s.keepReceipt(event.MoveAccepted.Receipt)
		s.moves++
	case *pb.PlayResponseItem_MoveRejected:
		s.handleRejection(event.MoveRejected)
	case *pb.PlayResponseItem_MatchEnded:
		s.handleEnd(event.MatchEnded)
	}
}

func (s *seat) keepReceipt(receipt []byte) {
	if len(receipt) > 0 {
		s.receipt = receipt
	}
}

func (s *seat) handleUpdate(update *pb.Update) {
	s.keepReceipt(update.Receipt)
	switch {
	case !update.ToAct:
		s.asked, s.answer = 0, nil
	case update.Prompt == s.asked:
		s.sendAnswer() // it may have been lost: the same bytes with the same request_id are never played twice
	default:
		s.asked, s.answer = update.Prompt, nil
		go s.think(update) // so that pings are answered meanwhile
	}
}

func (s *seat) think(update *pb.Update) {
	move := choose(update.Pace, update.GetUgo())
	s.bot.mutex.Lock()
	defer s.bot.mutex.Unlock()
	if s.asked == update.Prompt {
		s.answer = &pb.SubmitMove{RequestId: rand.Text(), Prompt: update.Prompt, Move: &pb.SubmitMove_Ugo{Ugo: move}}
		s.sendAnswer()
	}
}

func (s *seat) handleRejection(rejected *pb.MoveRejected) {
	log.Printf("%s: rejected: %s [%s]", s.key.match, rejected.Message, rejected.Reason)
	switch rejected.Reason {
	case pb.MoveRejected_REASON_NOT_YOUR_SEAT:
		s.bot.closeSeat(s)
	case pb.MoveRejected_REASON_NOT_SEATED, pb.MoveRejected_REASON_NOT_HERE, pb.MoveRejected_REASON_MATCH_OVER:
		s.later(500*time.Millisecond, s.sitDown)
	case pb.MoveRejected_REASON_TOO_MANY:
		s.later(500*time.Millisecond, s.sendAnswer)
	default: // a fault of choose, or too late: the referee plays the default move when the time is over
		s.answer = nil
	}
}

func (s *seat) handleEnd(ended *pb.MatchEnded) {
	if digest := sha256.Sum256(ended.Seed); len(ended.Seed) > 0 && !bytes.Equal(digest[:], s.offer.Commitment) {
		log.Printf("%s: the seed is not the one that the server was committed to", s.key.match)
	}
	if ended.Result == nil {
		log.Printf("%s: void (%s)", s.key.match, ended.VoidReason)
	} else {
		log.Printf("%s: rank %d of %v, %d moves", s.key.match, ended.Result.Ranks[s.key.seat], ended.Result.Points, s.moves)
	}
	s.bot.finished++
	s.bot.closeSeat(s)
}

// later does something after a while, unless the seat is closed by then.
func (s *seat) later(wait time.Duration, do func()) {
	time.AfterFunc(wait, func() {
		s.bot.mutex.Lock()
		defer s.bot.mutex.Unlock()
		if s.bot.seats[s.key] == s {
			do()
		}
	})
}
