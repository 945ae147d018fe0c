//! Attends the lobby, and keeps a link to each referee at which the bot has seats. One task owns all of it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

use crate::link::{Link, attend};
use crate::proto::seatwise::games::ugo::v1::Move;
use crate::proto::seatwise::v1::attend_response::Event as LobbyEvent;
use crate::proto::seatwise::v1::play_request_item::Action;
use crate::proto::seatwise::v1::play_response_item::Event as ItemEvent;
use crate::proto::seatwise::v1::{
    AttendRequest, AttendResponse, PlayRequest, PlayRequestItem, PlayResponse, PlayResponseItem, Pong, SeatOffer,
};
use crate::seat::{Again, Seat, SeatKey, SeatState};
use crate::wire::{Target, Wire};

pub type Events = UnboundedSender<Event>;

/// What happens to a bot.
pub enum Event {
    Attending(UnboundedSender<AttendRequest>),
    Lobby(AttendResponse),
    Playing(Target, UnboundedSender<PlayRequest>),
    Referee(Target, PlayResponse),
    Chosen(SeatKey, i32, Move),
    Again(SeatKey, Again),
    Drain,
    Final(String),
}

/// What the bot is asked to do.
pub struct Plan {
    pub lobby: Target,
    pub queues: Vec<String>,
    pub max_matches: i32,
    /// The bot stops after so many; 0 means never.
    pub matches: i32,
}

pub struct Bot {
    plan: Plan,
    wire: Arc<Wire>,
    events: Events,
    attendance: Option<UnboundedSender<AttendRequest>>,
    seats: HashMap<SeatKey, Seat>,
    past: HashSet<SeatKey>,
    links: HashMap<Target, Link>,
    /// The highest epoch of each match.
    epochs: HashMap<String, i64>,
    finished: i32,
    is_draining: bool,
    /// Whether the lobby has confirmed that it offers no more seats.
    is_drained: bool,
}

impl Bot {
    pub fn new(plan: Plan, wire: Wire, events: Events) -> Bot {
        Bot {
            plan,
            wire: Arc::new(wire),
            events,
            attendance: None,
            seats: HashMap::new(),
            past: HashSet::new(),
            links: HashMap::new(),
            epochs: HashMap::new(),
            finished: 0,
            is_draining: false,
            is_drained: false,
        }
    }

    /// Attends and plays until all is drained. Returns an error that no other attempt can mend.
    pub async fn run(mut self, mut events: UnboundedReceiver<Event>) -> Result<(), String> {
        tokio::spawn(attend(self.wire.clone(), self.plan.lobby.clone(), self.events.clone()));
        while let Some(event) = events.recv().await {
            match event {
                Event::Attending(requests) => {
                    self.attendance = Some(requests);
                    self.send_limit();
                }
                Event::Lobby(response) => self.handle_lobby(response),
                Event::Playing(target, requests) => self.handle_open_link(&target, requests),
                Event::Referee(target, response) => self.handle_referee(&target, response),
                Event::Chosen(key, prompt, chosen) => {
                    self.with_seat(&key, |seat, link| seat.answer_prompt(prompt, chosen, link));
                }
                Event::Again(key, what) => self.handle_again(&key, &what),
                Event::Drain => self.drain(),
                Event::Final(error) => return Err(error),
            }
            if self.is_drained && self.seats.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// Takes no more seats, finishes the open matches, and ends.
    fn drain(&mut self) {
        eprintln!("draining: {} matches are open", self.seats.len());
        self.is_draining = true;
        self.send_limit();
    }

    // The lobby

    fn send_limit(&self) {
        if let Some(requests) = &self.attendance {
            let _ = requests.send(AttendRequest { queues: self.plan.queues.clone(), max_matches: self.limit() });
        }
    }

    fn limit(&self) -> i32 {
        match self.plan.matches {
            _ if self.is_draining => 0,
            0 => self.plan.max_matches,
            matches => self.plan.max_matches.min((matches - self.finished).max(0)),
        }
    }

    fn handle_lobby(&mut self, response: AttendResponse) {
        match response.event {
            Some(LobbyEvent::Welcome(welcome)) => {
                self.is_drained = self.is_draining && welcome.max_matches == 0 && welcome.pending_seats == 0;
            }
            Some(LobbyEvent::Offer(offer)) => self.handle_offer(offer),
            Some(LobbyEvent::Closed(closed)) => {
                // The referee's word of the end may have been lost: ask for it.
                let key = SeatKey { game_match: closed.r#match, seat: closed.seat };
                if let Some(seat) = self.seats.get(&key) {
                    seat.later(Duration::from_secs(1), Again::SitDown);
                    seat.later(Duration::from_secs(30), Again::GiveUp);
                }
            }
            Some(LobbyEvent::TakenOff(off)) => eprintln!("off {}: {}", off.queue, off.reason),
            _ => {}
        }
    }

    /// Takes a seat, or moves it to the referee that has taken its match over.
    fn handle_offer(&mut self, offer: SeatOffer) {
        let key = SeatKey { game_match: offer.r#match.clone(), seat: offer.seat };
        let is_known = self.seats.get(&key).is_some_and(|seat| seat.offer.epoch == offer.epoch);
        if self.past.contains(&key) || is_known || self.is_outdated(&offer.r#match, offer.epoch) {
            return;
        }
        let target = match offer.address.as_str() {
            "" => self.plan.lobby.clone(),
            address => Target::read(address, Some(&self.plan.lobby)),
        };
        if let Some(seat) = self.seats.get_mut(&key) {
            (seat.offer, seat.target) = (offer, target.clone());
        } else {
            eprintln!("seated in {} at seat {} against {:?}", offer.r#match, offer.seat, offer.bots);
            let seat = Seat::new(key.clone(), offer, target.clone(), self.events.clone());
            self.seats.insert(key.clone(), seat);
        }
        let (wire, events) = (self.wire.clone(), self.events.clone());
        self.links.entry(target.clone()).or_insert_with(|| Link::open(wire, target, events));
        self.with_seat(&key, |seat, link| seat.sit_down(link));
        self.close_links_without_seats();
    }

    // The referees

    fn handle_open_link(&mut self, target: &Target, requests: UnboundedSender<PlayRequest>) {
        if let Some(link) = self.links.get_mut(target) {
            link.set_stream(requests);
            for seat in self.seats.values().filter(|seat| seat.target == *target) {
                seat.sit_down(link);
            }
        }
    }

    fn handle_referee(&mut self, target: &Target, response: PlayResponse) {
        for item in response.items {
            if let Some(ItemEvent::Ping(ping)) = item.event {
                let pong = Some(Action::Pong(Pong { number: ping.number }));
                if let Some(link) = self.links.get(target) {
                    link.send(PlayRequestItem { action: pong, ..Default::default() });
                }
            } else {
                self.handle_item(item);
            }
        }
    }

    fn handle_item(&mut self, item: PlayResponseItem) {
        let key = SeatKey { game_match: item.r#match.clone(), seat: item.seat };
        if self.is_outdated(&item.r#match, item.epoch) {
            return;
        }
        match self.with_seat(&key, |seat, link| seat.handle_item(item, link)) {
            Some(SeatState::Finished) => {
                self.finished += 1;
                self.close_seat(&key);
            }
            Some(SeatState::NotOurs) => self.close_seat(&key),
            _ => {}
        }
    }

    /// Whether this epoch is older than one already seen; epoch 0 belongs to no owner. It notes the epoch.
    fn is_outdated(&mut self, game_match: &str, epoch: i64) -> bool {
        let seen = self.epochs.entry(game_match.into()).or_default();
        let is_older = epoch > 0 && epoch < *seen;
        *seen = epoch.max(*seen);
        is_older
    }

    // Seats

    fn with_seat<T>(&mut self, key: &SeatKey, act: impl FnOnce(&mut Seat, &Link) -> T) -> Option<T> {
        let seat = self.seats.get_mut(key)?;
        let link = self.links.get(&seat.target)?;
        Some(act(seat, link))
    }

    fn handle_again(&mut self, key: &SeatKey, what: &Again) {
        match what {
            Again::SitDown => drop(self.with_seat(key, |seat, link| seat.sit_down(link))),
            Again::SendAnswer => drop(self.with_seat(key, |seat, link| seat.send_answer(link))),
            Again::GiveUp if self.seats.contains_key(key) => self.close_seat(key),
            Again::GiveUp => {}
        }
    }

    fn close_seat(&mut self, key: &SeatKey) {
        self.seats.remove(key);
        self.past.insert(key.clone());
        self.close_links_without_seats();
        self.is_draining |= self.plan.matches > 0 && self.finished >= self.plan.matches;
        self.send_limit();
    }

    fn close_links_without_seats(&mut self) {
        let seats = &self.seats;
        self.links.retain(|target, _| seats.values().any(|seat| seat.target == *target));
    }
}
