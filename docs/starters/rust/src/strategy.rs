//! Chooses the moves. This is the place for your own ideas.

use crate::proto::seatwise::games::ugo::v1::{Arrange, Move, View, r#move::Kind};

/// Answers a prompt of UGO!. It runs beside the streams, so it may take as long as the clock allows.
pub fn choose(pace: &str, view: &View) -> Move {
    let kind = if pace == "arrange" {
        Kind::Arrange(Arrange { cards: view.won_cards.clone() })
    } else {
        let lowest = view.legal_cards.iter().min_by_key(|card| value_of(**card));
        Kind::Play(*lowest.expect("a prompt for a card has legal cards"))
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
    fn it_plays_its_lowest_card() {
        let legal_cards = vec![Card::R5 as i32, Card::B2 as i32, Card::G7 as i32];
        let answer = choose("card", &View { legal_cards, ..View::default() });
        assert_eq!(answer.kind, Some(Kind::Play(Card::B2 as i32)));
    }

    #[test]
    fn it_lays_the_cards_that_it_has_won() {
        let won_cards = vec![Card::R5 as i32, Card::B2 as i32];
        let answer = choose("arrange", &View { won_cards: won_cards.clone(), ..View::default() });
        assert_eq!(answer.kind, Some(Kind::Arrange(Arrange { cards: won_cards })));
    }
}
