package main

import (
	"testing"

	ugov1 "seatwise.example/gen/ugov1"
)

func TestItPlaysItsHighestCard(t *testing.T) {
	view := &ugov1.View{LegalCards: []ugov1.Card{ugov1.Card_CARD_R5, ugov1.Card_CARD_B2, ugov1.Card_CARD_G7}}
	if got := choose("card", view).GetPlay(); got != ugov1.Card_CARD_G7 {
		t.Errorf("it plays %v", got)
	}
}

func TestItLaysTheHighestCardThatItHasWonOnTop(t *testing.T) {
	view := &ugov1.View{WonCards: []ugov1.Card{ugov1.Card_CARD_R5, ugov1.Card_CARD_B2}}
	if got := choose("arrange", view).GetArrange().GetCards(); len(got) != 2 || got[0] != ugov1.Card_CARD_B2 {
		t.Errorf("it lays %v", got)
	}
}
