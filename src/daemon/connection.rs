//! One connection: lines in, answers out in any order, every wait bounded.
//!
//! When too many requests are unanswered the connection is not read any further, and the kernel's buffer tells the
//! client to wait. Broken framing, a line that takes too long, or an answer that nobody reads ends the connection and
//! nothing else; so does a panic in a handler.
//!
//! A subscribed connection is told what happens, between the answers and never inside one. What was told before an
//! answer was made is written before it: whoever has read an answer has read every event that it knew of, or the count of
//! those that were lost.

use super::patience::write_patiently;
use super::request::{Reply, answer};
use super::subscribers::Subscription;
use super::{Command, Daemon};
use crate::config::Server;
use crate::protocol::answer::refusal_line;
use crate::protocol::frame::{Lines, TooLong};
use crate::protocol::refusal::Refusal;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};

/// Bytes asked of the kernel at once.
const READ_BYTES: usize = 16 * 1024;

/// `number` is the connection's, in what is traced of it.
pub(super) async fn converse(
    daemon: Arc<Daemon>,
    stream: UnixStream,
    stop: watch::Receiver<Command>,
    number: u64,
) {
    let options = daemon.config().server.clone();
    let (reader, writer) = stream.into_split();
    let lines = Lines::new(options.request_bytes_max);
    let connection = Connection {
        daemon,
        options,
        reader,
        writer,
        lines,
        stop,
        number,
        answers: JoinSet::new(),
        subscription: None,
        line_since: None,
    };
    connection.run().await;
}

struct Connection {
    daemon: Arc<Daemon>,
    options: Server,
    reader: OwnedReadHalf,
    writer: OwnedWriteHalf,
    lines: Lines,
    stop: watch::Receiver<Command>,
    number: u64,
    answers: JoinSet<Reply>,
    subscription: Option<Subscription>,
    line_since: Option<Instant>,
}

/// What a connection waits for.
enum Event {
    Answer(Result<Reply, JoinError>),
    Read(std::io::Result<usize>),
    Told,
    Impatient,
    Stop,
}

/// Why a connection ends.
enum End {
    Closed,
    Said(String),
    /// Nothing more can be written: the last line may be there in part.
    Broken,
}

impl Connection {
    async fn run(mut self) {
        let end = loop {
            match self.step().await {
                Ok(()) => {}
                Err(end) => break end,
            }
        };
        // What was asked is answered even when nothing more is read.
        if matches!(end, End::Broken) {
            return;
        }
        while let Some(answer) = self.answers.join_next().await {
            if self.answer(answer.unwrap_or_default()).await.is_err() {
                return;
            }
        }
        if let End::Said(line) = end {
            // The connection ends either way.
            let _ = self.write(&line).await;
        }
    }

    async fn step(&mut self) -> Result<(), End> {
        let may_read = self.answers.len() < self.options.pending_max;
        if may_read && self.take_line()? {
            return Ok(());
        }
        let patience = self.patience();
        self.lines.buffer().reserve(READ_BYTES);
        let event = tokio::select! {
            biased;
            Some(answer) = self.answers.join_next() => Event::Answer(answer),
            read = self.reader.read_buf(self.lines.buffer()), if may_read => Event::Read(read),
            () = told(self.subscription.as_ref()) => Event::Told,
            () = tokio::time::sleep(patience), if may_read => Event::Impatient,
            _ = self.stop.wait_for(|command| *command == Command::Stop) => Event::Stop,
        };
        match event {
            Event::Answer(Ok(answer)) => self.answer(answer).await,
            Event::Told => self.answer(Reply::default()).await,
            // A handler that panicked will never answer, and whoever waits for it must not wait for ever.
            Event::Answer(Err(_)) => Err(End::Closed),
            Event::Read(Ok(0) | Err(_)) | Event::Stop => Err(End::Closed),
            Event::Read(Ok(_)) => {
                self.line_since.get_or_insert_with(Instant::now);
                Ok(())
            }
            Event::Impatient => Err(self.impatient()),
        }
    }

    /// Begins to answer the next whole line, if there is one.
    fn take_line(&mut self) -> Result<bool, End> {
        match self.lines.next_line() {
            Ok(Some(line)) => {
                self.line_since = self.lines.is_inside_line().then(Instant::now);
                self.answers.spawn(answer(Arc::clone(&self.daemon), line, self.number));
                Ok(true)
            }
            Ok(None) => Ok(false),
            Err(TooLong) => {
                let max = self.options.request_bytes_max;
                let why = format!("the line is longer than {max} bytes, which is server.request_bytes_max");
                Err(End::Said(refusal_line(None, &Refusal::application("too_large", why))))
            }
        }
    }

    /// How long to wait for the next byte: for the rest of a line, or for the next request.
    fn patience(&self) -> Duration {
        match self.line_since {
            Some(since) => {
                Duration::from_millis(self.options.line_timeout_ms).saturating_sub(since.elapsed())
            }
            None if self.answers.is_empty() && self.subscription.is_none() => {
                Duration::from_millis(self.options.idle_timeout_ms)
            }
            // Somebody who waits for an answer, or for whatever happens, is not idle.
            None => Duration::from_secs(60 * 60),
        }
    }

    fn impatient(&self) -> End {
        if self.line_since.is_none() {
            return End::Closed;
        }
        let ms = self.options.line_timeout_ms;
        let why = format!("the line did not end within {ms} ms, which is server.line_timeout_ms");
        End::Said(refusal_line(None, &Refusal::invalid_request(why)))
    }

    /// Writes what was told so far, then this answer and all others that are ready: one system call for a pipelined
    /// client.
    async fn answer(&mut self, first: Reply) -> Result<(), End> {
        let mut text = self.subscription.as_ref().map(Subscription::take).unwrap_or_default();
        let mut panicked = false;
        let mut next = Some(Ok(first));
        while let Some(answer) = next {
            match answer {
                Ok(reply) => self.add(&mut text, reply),
                Err(_) => panicked = true,
            }
            next = self.answers.try_join_next();
        }
        if !text.is_empty() {
            self.write(&text).await?;
        }
        if panicked { Err(End::Closed) } else { Ok(()) }
    }

    /// What happens from here on is told behind the answer that promised it.
    fn add(&mut self, text: &mut String, reply: Reply) {
        match reply.line {
            Some(line) if text.is_empty() => *text = line,
            line => text.extend(line),
        }
        if let Some(wanted) = reply.wanted {
            let lines_max = self.options.subscriber_events_max;
            self.subscription = Some(self.daemon.subscribers.subscribe(wanted, lines_max));
        }
    }

    async fn write(&mut self, text: &str) -> Result<(), End> {
        let bound = Duration::from_millis(self.options.write_timeout_ms);
        let written = if self.subscription.is_some() {
            let hurried = || *self.stop.borrow() == Command::Stop;
            write_patiently(self.writer.as_ref(), text.as_bytes(), bound, hurried).await.is_ok()
        } else {
            let written = tokio::time::timeout(bound, self.writer.write_all(text.as_bytes())).await;
            matches!(written, Ok(Ok(())))
        };
        if written { Ok(()) } else { Err(End::Broken) }
    }
}

/// Nobody who is not subscribed is ever told anything.
async fn told(subscription: Option<&Subscription>) {
    match subscription {
        Some(subscription) => subscription.ready().await,
        None => std::future::pending().await,
    }
}
