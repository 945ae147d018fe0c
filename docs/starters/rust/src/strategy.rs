//! Chooses the moves. This is the place for your own ideas.

use crate::proto::seatwise::games::ugo::v1::{Arrange, Move, View, r#move::Kind};

/// Answers a prompt of UGO!: plays the highest card, and lays the highest on top.
///
/// It runs beside the streams, so it may take as long as the clock allows.
pub fn choose(pace: &str, view: &View) -> Move {
    let kind = if pace == "arrange" {
        let mut cards = view.won_cards.clone();
        cards.sort_by_key(|card| value_of(*card));
        Kind::Arrange(Arrange { cards })
    } else {
        let highest = view.legal_cards.iter().max_by_key(|card| value_of(**card));
        Kind::Play(*highest.expect("a prompt for a card has legal cards"))
    };
    Move { kind: Some(kind) }
}

/// Returns the value of a card, 0 to 8.
fn value_of(card: i32) -> i32 {
    (card - 1) % 9
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::seatwise::games::ugo::v1::Card;

    #[test]
    fn it_plays_its_highest_card() {
        let legal_cards = vec![Card::R5 as i32, Card::B2 as i32, Card::G7 as i32];
        let answer = choose("card", &View { legal_cards, ..View::default() });
        assert_eq!(answer.kind, Some(Kind::Play(Card::G7 as i32)));
    }

    #[test]
    fn it_lays_the_highest_card_that_it_has_won_on_top() {
        let won_cards = vec![Card::R5 as i32, Card::B2 as i32];
        let answer = choose("arrange", &View { won_cards, ..View::default() });
        let cards = vec![Card::B2 as i32, Card::R5 as i32];
        assert_eq!(answer.kind, Some(Kind::Arrange(Arrange { cards })));
    }
}
