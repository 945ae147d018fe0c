//! The streams: one to the lobby, and one to each referee, which carries all seats of the bot there.

use std::sync::Arc;

use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::Status;

use crate::bot::{Event, Events};
use crate::proto::seatwise::v1::lobby_service_client::LobbyServiceClient;
use crate::proto::seatwise::v1::play_service_client::PlayServiceClient;
use crate::proto::seatwise::v1::{AttendRequest, PlayRequest, PlayRequestItem};
use crate::wire::{Target, Wire, keep_open};

/// Attends the lobby until that ends for good.
pub async fn attend(wire: Arc<Wire>, lobby: Target, events: Events) {
    let end = keep_open("lobby".into(), true, || attend_once(wire.clone(), lobby.clone(), events.clone())).await;
    let _ = events.send(Event::Final(end));
}

async fn attend_once(wire: Arc<Wire>, lobby: Target, events: Events) -> Result<(), Status> {
    let mut client = LobbyServiceClient::new(wire.connect(&lobby).await?);
    let (requests, outgoing) = unbounded_channel::<AttendRequest>();
    let _ = events.send(Event::Attending(requests));
    let request = wire.authorize(UnboundedReceiverStream::new(outgoing));
    let mut responses = client.attend(request).await?.into_inner();
    while let Some(response) = responses.message().await? {
        let _ = events.send(Event::Lobby(response));
    }
    Ok(())
}

/// The link to one referee. It ends when it is dropped.
pub struct Link {
    requests: Option<UnboundedSender<PlayRequest>>,
    task: JoinHandle<()>,
}

impl Link {
    pub fn open(wire: Arc<Wire>, to: Target, events: Events) -> Link {
        Link { requests: None, task: tokio::spawn(play(wire, to, events)) }
    }

    /// Notes the stream that is open now.
    pub fn set_stream(&mut self, requests: UnboundedSender<PlayRequest>) {
        self.requests = Some(requests);
    }

    /// Sends an item, or drops it while the stream is down: seats repeat what was not confirmed.
    pub fn send(&self, item: PlayRequestItem) {
        if let Some(requests) = &self.requests {
            let _ = requests.send(PlayRequest { items: vec![item] });
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn play(wire: Arc<Wire>, to: Target, events: Events) {
    let name = format!("referee {}", to.host_port);
    let end = keep_open(name, false, || play_once(wire.clone(), to.clone(), events.clone())).await;
    let _ = events.send(Event::Final(end));
}

async fn play_once(wire: Arc<Wire>, to: Target, events: Events) -> Result<(), Status> {
    let mut client = PlayServiceClient::new(wire.connect(&to).await?);
    let (requests, outgoing) = unbounded_channel::<PlayRequest>();
    let _ = events.send(Event::Playing(to.clone(), requests));
    let request = wire.authorize(UnboundedReceiverStream::new(outgoing));
    let mut responses = client.play(request).await?.into_inner();
    while let Some(response) = responses.message().await? {
        let _ = events.send(Event::Referee(to.clone(), response));
    }
    Ok(())
}
