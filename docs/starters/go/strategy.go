package main

import (
	"cmp"
	"slices"

	ugov1 "seatwise.example/gen/ugov1"
)

// choose answers a prompt of UGO!: it plays the highest card, and lays the highest on top.
//
// This is the place for your own ideas. It runs beside the streams, so it may take as long as the clock allows.
func choose(pace string, view *ugov1.View) *ugov1.Move {
	if pace == "arrange" {
		rising := slices.SortedFunc(slices.Values(view.WonCards), byValue)
		return &ugov1.Move{Kind: &ugov1.Move_Arrange{Arrange: &ugov1.Arrange{Cards: rising}}}
	}
	return &ugov1.Move{Kind: &ugov1.Move_Play{Play: slices.MaxFunc(view.LegalCards, byValue)}}
}

func byValue(one, other ugov1.Card) int { return cmp.Compare(valueOf(one), valueOf(other)) }

// valueOf returns the value of a card, 0 to 8.
func valueOf(card ugov1.Card) int32 { return (int32(card) - 1) % 9 }
