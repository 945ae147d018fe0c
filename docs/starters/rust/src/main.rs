//! A whole Seatwise bot: it attends a queue, plays UGO! over gRPC, and survives lost links. Your own ideas go into strategy.rs.

mod bot;
mod link;
mod seat;
mod strategy;
mod wire;

use std::collections::HashMap;
use std::process::exit;

use tokio::signal::unix::{SignalKind, signal};

use bot::{Bot, Event, Events, Plan};
use wire::{Target, Wire};

/// What build.rs has made from the protos.
mod proto {
    pub mod seatwise {
        pub mod v1 {
            tonic::include_proto!("seatwise.v1");
        }
        pub mod games {
            pub mod ugo {
                pub mod v1 {
                    tonic::include_proto!("seatwise.games.ugo.v1");
                }
            }
            pub mod ubongo {
                pub mod v1 {
                    tonic::include_proto!("seatwise.games.ubongo.v1");
                }
            }
        }
    }
}

const HELP: &str = "\
--address ADDRESS   the server: host:port, https://host:port or http://host:port
--queue NAMES       the queues to wait in, with commas between them; empty for matches that name the bot
--max-matches N     play at most so many matches at once
--matches N         stop after so many matches; 0 means never
--tls-ca FILE       a file with the CAs to trust, or the server's own certificate
--insecure          let the token travel in clear to another machine
The environment variable SEATWISE_TOKEN holds the bot's token.";

#[tokio::main(flavor = "current_thread")]
async fn main() {
    if let Err(error) = run().await {
        eprintln!("{error}");
        exit(1);
    }
    exit(0); // a strategy that still computes is not waited for
}

async fn run() -> Result<(), String> {
    let options = read_options();
    let token = std::env::var("SEATWISE_TOKEN").unwrap_or_default().trim().to_string();
    if options.contains_key("--help") || token.is_empty() {
        return Err(HELP.into());
    }
    let option = |name: &str, default: &str| options.get(name).cloned().unwrap_or_else(|| default.into());
    let number =
        |name: &str, default: &str| option(name, default).parse().map_err(|_| format!("{name} takes a number"));
    let plan = Plan {
        lobby: Target::read(&option("--address", "localhost:7433"), None),
        queues: option("--queue", "casual").split(',').filter(|name| !name.is_empty()).map(Into::into).collect(),
        max_matches: number("--max-matches", "4")?,
        matches: number("--matches", "0")?,
    };
    let read_file = |file: &String| std::fs::read(file).map_err(|error| format!("{file}: {error}"));
    let ca_pem = options.get("--tls-ca").map(read_file).transpose()?;
    let wire = Wire::new(&token, ca_pem, options.contains_key("--insecure"))?;
    let (events, incoming) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(drain_on_signal(events.clone()));
    Bot::new(plan, wire, events).run(incoming).await
}

/// Finishes the open matches after the first Ctrl-C, and leaves at once after the second.
async fn drain_on_signal(events: Events) {
    let mut interrupted = signal(SignalKind::interrupt()).expect("signals can be handled");
    let mut terminated = signal(SignalKind::terminate()).expect("signals can be handled");
    for _ in 0..2 {
        tokio::select! {
            _ = interrupted.recv() => {}
            _ = terminated.recv() => {}
        }
        if events.send(Event::Drain).is_err() {
            return;
        }
    }
    exit(1);
}

fn read_options() -> HashMap<String, String> {
    let mut options = HashMap::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let is_flag = name == "--insecure" || name == "--help";
        let value = if is_flag { String::new() } else { arguments.next().unwrap_or_default() };
        options.insert(name, value);
    }
    options
}
