//! Opens connections that may carry the token, and says what to do when a stream ends.

use std::time::Duration;

use prost::Message;
use tokio::time::Instant;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tonic::{Code, Request, Status};

use crate::proto::seatwise::v1::{ErrorInfo, Status as ErrorStatus};

const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// An address without its scheme.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Target {
    pub host_port: String,
    pub is_tls: bool,
}

impl Target {
    /// Reads host:port, https://host:port or http://host:port. Without a scheme an offer's address is as the lobby's.
    pub fn read(address: &str, lobby: Option<&Target>) -> Target {
        if let Some(host_port) = address.strip_prefix("https://") {
            return Target { host_port: host_port.into(), is_tls: true };
        }
        if let Some(host_port) = address.strip_prefix("http://") {
            return Target { host_port: host_port.into(), is_tls: false };
        }
        let is_tls = lobby.map_or_else(|| !is_this_machine(address), |lobby| lobby.is_tls);
        Target { host_port: address.into(), is_tls }
    }
}

fn is_this_machine(host_port: &str) -> bool {
    let host = host_port.rsplit_once(':').map_or(host_port, |(host, _)| host);
    ["localhost", "127.0.0.1", "[::1]"].contains(&host)
}

/// Opens connections that may carry the token.
pub struct Wire {
    authorization: MetadataValue<Ascii>,
    tls: ClientTlsConfig,
    may_travel_in_clear: bool,
}

impl Wire {
    pub fn new(token: &str, ca_pem: Option<Vec<u8>>, may_travel_in_clear: bool) -> Result<Wire, String> {
        let tls = match ca_pem {
            Some(pem) => ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem)),
            None => ClientTlsConfig::new().with_native_roots(),
        };
        let authorization =
            format!("Bearer {token}").parse().map_err(|_| "the token has characters that no token has")?;
        Ok(Wire { authorization, tls, may_travel_in_clear })
    }

    /// Opens a connection of its own for one stream.
    pub async fn connect(&self, to: &Target) -> Result<Channel, Status> {
        if !to.is_tls && !self.may_travel_in_clear && !is_this_machine(&to.host_port) {
            return Err(Status::unauthenticated("the token would travel in clear; use https://, or --insecure"));
        }
        let scheme = if to.is_tls { "https" } else { "http" };
        let mut endpoint = Endpoint::from_shared(format!("{scheme}://{}", to.host_port))
            .map_err(|error| Status::invalid_argument(explain(&error)))?
            .connect_timeout(Duration::from_secs(5))
            .http2_keep_alive_interval(Duration::from_secs(10))
            .keep_alive_timeout(Duration::from_secs(5));
        if to.is_tls {
            // The library checks the host's name too.
            endpoint =
                endpoint.tls_config(self.tls.clone()).map_err(|error| Status::unauthenticated(explain(&error)))?;
        }
        endpoint.connect().await.map_err(|error| Status::unavailable(explain(&error)))
    }

    /// Puts the token into a request.
    pub fn authorize<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request.metadata_mut().insert("authorization", self.authorization.clone());
        request
    }
}

/// Returns an error with all its causes.
fn explain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// Runs a stream again whenever it ends, and returns when it has ended for good.
pub async fn keep_open<F>(name: String, is_lobby: bool, mut run_once: impl FnMut() -> F) -> String
where
    F: Future<Output = Result<(), Status>>,
{
    let mut failures = 0;
    loop {
        let began = Instant::now();
        let error = run_once().await.err().unwrap_or_else(|| Status::unavailable("the server closed the stream"));
        if is_final(&error, is_lobby) {
            return format!("{name}: {} [{}]", error.message(), reason_of(&error).reason);
        }
        failures = if began.elapsed() > LONGEST_WAIT { 0 } else { failures + 1 };
        eprintln!("{name}: {}; coming again", error.message());
        tokio::time::sleep(wait_after(&error, failures)).await;
    }
}

/// Whether another attempt must not be made: the table "When to reconnect" of docs/protocol.md.
fn is_final(error: &Status, is_lobby: bool) -> bool {
    match error.code() {
        Code::Unauthenticated | Code::PermissionDenied => true,
        Code::NotFound
        | Code::InvalidArgument
        | Code::OutOfRange
        | Code::AlreadyExists
        | Code::FailedPrecondition
        | Code::Unimplemented => is_lobby,
        _ => reason_of(error).reason == "REPLACED",
    }
}

/// Returns the reason that the server gave; an empty one if it gave none.
fn reason_of(error: &Status) -> ErrorInfo {
    let details = ErrorStatus::decode(error.details()).map(|status| status.details).unwrap_or_default();
    details.first().and_then(|any| ErrorInfo::decode(any.value.as_slice()).ok()).unwrap_or_default()
}

/// Returns a random time below a bound that doubles, after the time that a full server asks for.
fn wait_after(error: &Status, failures: u32) -> Duration {
    let bound = LONGEST_WAIT.min(FIRST_WAIT * 2u32.pow(failures.min(10)));
    let asked = reason_of(error).metadata.get("retry_after").and_then(|seconds| seconds.parse().ok()).unwrap_or(0.0);
    Duration::from_secs_f64(asked) + bound.mul_f64(rand::random())
}
