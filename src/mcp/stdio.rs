//! Stdin and stdout as the protocol's transport: one message a line, bounded, and patient with clients that clear their throat.

use rmcp::RoleServer;
use rmcp::model::{ClientRequest, GetMeta, JsonRpcMessage};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use std::io;
use tokio::io::{Stdin, Stdout};

/// Longest line of a client. The daemon's own bound is lower, and its refusal is an answer; what is longer than this is
/// dropped unread, with a line in the log, for there is no id to answer to.
const LINE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The transport.
pub(super) struct Stdio {
    lines: AsyncRwTransport<RoleServer, Stdin, Stdout>,
    begun: bool,
}

impl Stdio {
    pub(super) fn new() -> Self {
        let (stdin, stdout) = rmcp::transport::io::stdio();
        let lines = AsyncRwTransport::new_server(stdin, stdout).with_max_line_length(LINE_BYTES_MAX);
        Self { lines, begun: false }
    }
}

impl Transport<RoleServer> for Stdio {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        self.lines.send(message)
    }

    /// `rmcp` ends a session that begins with a notification or an answer. There is nothing to be said to those, so they are
    /// left out until there has been a request that begins.
    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let message = self.lines.receive().await?;
            match &message {
                _ if self.begun => return Some(message),
                JsonRpcMessage::Request(request) => {
                    self.begun = begins(&request.request);
                    return Some(message);
                }
                _ => {}
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.lines.close().await
    }
}

/// By a handshake, or, as later versions have it, by a request that carries its version itself.
fn begins(request: &ClientRequest) -> bool {
    match request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => false,
        other => other.get_meta().protocol_version().is_some(),
    }
}
