package main

import (
	ugov1 "seatwise.example/gen/seatwise/games/ugo/v1"
)

// choose answers a prompt of UGO!. This is the place for your own ideas.
//
// It runs beside the streams, so it may take as long as the clock allows.
func choose(pace string, view *ugov1.View) *ugov1.Move {
	if pace == "arrange" {
		return &ugov1.Move{Kind: &ugov1.Move_Arrange{Arrange: &ugov1.Arrange{Cards: view.WonCards}}}
	}
	lowest := view.LegalCards[0]
	for _, card := range view.LegalCards {
		if valueOf(card) < valueOf(lowest) {
			lowest = card
		}
	}
	return &ugov1.Move{Kind: &ugov1.Move_Play{Play: lowest}}
}

// valueOf returns the value of a card, 0 to 8.
func valueOf(card ugov1.Card) int32 { return (int32(card) - 1) % 9 }
