//! One seat of the bot, from the offer to the end of the match.

use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::bot::{Event, Events};
use crate::link::Link;
use crate::proto::seatwise::games::ugo::v1::{Move, View};
use crate::proto::seatwise::v1::move_rejected::Reason;
use crate::proto::seatwise::v1::play_request_item::Action;
use crate::proto::seatwise::v1::play_response_item::Event as ItemEvent;
use crate::proto::seatwise::v1::{
    MatchEnded, MoveRejected, PlayRequestItem, PlayResponseItem, SeatOffer, Sit, SubmitMove, Update, submit_move,
    update,
};
use crate::strategy;
use crate::wire::Target;

const AGAIN: Duration = Duration::from_millis(500);

/// Names a seat of a match.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct SeatKey {
    pub game_match: String,
    pub seat: i32,
}

/// What a seat does after a while.
#[derive(Debug)]
pub enum Again {
    SitDown,
    SendAnswer,
    GiveUp,
}

/// How an item leaves a seat.
#[derive(PartialEq)]
pub enum SeatState {
    Open,
    Finished,
    NotOurs,
}

pub struct Seat {
    pub key: SeatKey,
    pub offer: SeatOffer,
    pub target: Target,
    nonce: Vec<u8>,
    receipt: Vec<u8>,
    asked: i32,
    answer: Option<SubmitMove>,
    moves: u32,
    events: Events,
}

impl Seat {
    pub fn new(key: SeatKey, offer: SeatOffer, target: Target, events: Events) -> Seat {
        let nonce = rand::random::<[u8; 32]>().to_vec(); // stays the same over all links
        Seat { key, offer, target, nonce, receipt: vec![], asked: 0, answer: None, moves: 0, events }
    }

    /// Sits down, or again after the link was lost. The answer is the whole view.
    pub fn sit_down(&self, link: &Link) {
        self.send(link, Action::Sit(Sit { nonce: self.nonce.clone(), receipt: self.receipt.clone(), updates: 0 }));
    }

    fn send(&self, link: &Link, action: Action) {
        let SeatKey { game_match, seat } = self.key.clone();
        link.send(PlayRequestItem { r#match: game_match, seat, action: Some(action) });
    }

    pub fn send_answer(&self, link: &Link) {
        if let Some(answer) = &self.answer {
            self.send(link, Action::SubmitMove(answer.clone()));
        }
    }

    /// Handles an item of the referee.
    pub fn handle_item(&mut self, item: PlayResponseItem, link: &Link) -> SeatState {
        match item.event {
            Some(ItemEvent::Update(update)) => self.handle_update(update, link),
            Some(ItemEvent::MoveAccepted(accepted)) => {
                self.keep_receipt(accepted.receipt);
                self.moves += 1;
            }
            Some(ItemEvent::MoveRejected(rejected)) => return self.handle_rejection(&rejected),
            Some(ItemEvent::MatchEnded(ended)) => {
                self.report_end(&ended);
                return SeatState::Finished;
            }
            _ => {}
        }
        SeatState::Open
    }

    fn keep_receipt(&mut self, receipt: Vec<u8>) {
        if !receipt.is_empty() {
            self.receipt = receipt;
        }
    }

    fn handle_update(&mut self, update: Update, link: &Link) {
        self.keep_receipt(update.receipt);
        if !update.to_act {
            (self.asked, self.answer) = (0, None);
        } else if update.prompt == self.asked {
            self.send_answer(link); // it may have been lost: the same bytes with the same request_id are never played twice
        } else if let Some(update::View::Ugo(view)) = update.view {
            (self.asked, self.answer) = (update.prompt, None);
            self.think(update.prompt, update.pace, view);
        }
    }

    /// Computes beside the streams, so that pings are answered meanwhile.
    fn think(&self, prompt: i32, pace: String, view: View) {
        let (key, events) = (self.key.clone(), self.events.clone());
        tokio::task::spawn_blocking(move || {
            let chosen = strategy::choose(&pace, &view);
            let _ = events.send(Event::Chosen(key, prompt, chosen));
        });
    }

    /// Sends the move, unless its prompt is over by now.
    pub fn answer_prompt(&mut self, prompt: i32, chosen: Move, link: &Link) {
        if self.asked == prompt {
            let request_id = format!("{:032x}", rand::random::<u128>());
            let chosen = Some(submit_move::Move::Ugo(chosen));
            self.answer = Some(SubmitMove { request_id, prompt, r#move: chosen, ..Default::default() });
            self.send_answer(link);
        }
    }

    fn handle_rejection(&mut self, rejected: &MoveRejected) -> SeatState {
        let reason = rejected.reason();
        eprintln!("{}: rejected: {} [{}]", self.key.game_match, rejected.message, reason.as_str_name());
        match reason {
            Reason::NotYourSeat => return SeatState::NotOurs,
            Reason::NotSeated | Reason::NotHere | Reason::MatchOver => self.later(AGAIN, Again::SitDown),
            Reason::TooMany => self.later(AGAIN, Again::SendAnswer),
            _ => self.answer = None, // a fault of the strategy, or too late: the referee plays the default move in the end
        }
        SeatState::Open
    }

    fn report_end(&self, ended: &MatchEnded) {
        let name = &self.key.game_match;
        if !ended.seed.is_empty() && Sha256::digest(&ended.seed)[..] != self.offer.commitment[..] {
            eprintln!("{name}: the seed is not the one that the server was committed to");
        }
        match &ended.result {
            Some(result) => {
                let rank = result.ranks.get(self.key.seat as usize).copied().unwrap_or_default();
                eprintln!("{name}: rank {rank} of {:?}, {} moves", result.points, self.moves);
            }
            None => eprintln!("{name}: void ({})", ended.void_reason),
        }
    }

    /// Does something after a while. The bot drops it if the seat is closed by then.
    pub fn later(&self, wait: Duration, what: Again) {
        let (key, events) = (self.key.clone(), self.events.clone());
        tokio::spawn(async move {
            tokio::time::sleep(wait).await;
            let _ = events.send(Event::Again(key, what));
        });
    }
}
