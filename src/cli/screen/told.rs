//! What the daemon tells the screen: one thread hears that something happened, another asks what there is now.
//!
//! Notifications only say when to ask. So one that was lost, or told late, can show nothing wrong, and what is shown is
//! never put together from pieces.

use super::facts::{Away, Health, Line, Rows, Session};
use super::news::News;
use crate::cli::away::is_away;
use crate::cli::words::list;
use crate::client::log::{PAGE_LEN, last_seq, page};
use crate::client::{Client, ClientError};
use crate::protocol::request::{List, Status, Subscribe};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What no event tells of is asked for this often.
const TICK: Duration = Duration::from_secs(2);
/// Changes that come so close together are looked at once.
const CALM: Duration = Duration::from_millis(50);
/// Between two tries to reach a daemon that is away.
const PAUSE: Duration = Duration::from_millis(250);
/// A connection that is told nothing for so long is listened to further.
const SILENCE: Duration = Duration::from_secs(60);
/// Lines of the log to begin with.
const LINES: u64 = 200;
/// Orders that wait. Whoever asks next asks for all of them.
const ORDERS_MAX: usize = 64;

/// Something to ask again.
enum Order {
    /// Whatever is shown.
    Look,
    /// The rows of this session, too.
    Rows(String),
    /// Everything.
    All,
}

/// The way to whoever asks.
#[derive(Clone)]
pub(super) struct Asked {
    orders: SyncSender<Order>,
    selected: Arc<Mutex<Option<String>>>,
}

/// Who asks, not yet asking.
pub(super) struct Asker {
    socket: PathBuf,
    orders: Receiver<Order>,
    selected: Arc<Mutex<Option<String>>>,
    news: Sender<News>,
    /// The line of the log that was read last; none was, of a daemon that has just come.
    read: Option<u64>,
    /// The session whose rows were told last, and its counts then.
    rows: Option<Session>,
    rows_due: bool,
}

/// An asker, and the way to it.
pub(super) fn asker(socket: PathBuf, selected: Option<String>, news: Sender<News>) -> (Asker, Asked) {
    let (sent, orders) = sync_channel(ORDERS_MAX);
    let selected = Arc::new(Mutex::new(selected));
    let asked = Asked { orders: sent, selected: Arc::clone(&selected) };
    (Asker { socket, orders, selected, news, read: None, rows: None, rows_due: true }, asked)
}

impl Asked {
    /// This session's rows are shown from now on.
    pub(super) fn select(&self, session: Option<&str>) {
        *self.selected.lock().unwrap_or_else(PoisonError::into_inner) = session.map(str::to_owned);
        // Where many orders wait, the answer to them is about this session already.
        let _ = self.orders.try_send(Order::All);
    }

    /// Hears what happens and has it asked about, as long as there is anybody to ask.
    pub(super) fn listen(&self, socket: &std::path::Path) {
        let topics = ["staleness", "decision", "fork", "gap"].map(str::to_owned).to_vec();
        let wanted = Subscribe { topics, session: None };
        loop {
            if let Ok(mut told) = Client::connect(socket).and_then(|client| client.subscribe(&wanted)) {
                let mut going = self.order(Order::All);
                while going {
                    going = match told.next(SILENCE) {
                        Ok(None) => true,
                        Ok(Some(event)) => self.order(order(&event)),
                        Err(_) => break,
                    };
                }
            }
            if !self.order(Order::Look) {
                return;
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Whether anybody is there to take it.
    fn order(&self, order: Order) -> bool {
        match self.orders.try_send(order) {
            Ok(()) => true,
            // What waits says that something happened; that it was everything is the safe thing to say.
            Err(TrySendError::Full(_)) => self.orders.send(Order::All).is_ok(),
            Err(TrySendError::Disconnected(_)) => false,
        }
    }
}

fn order(event: &str) -> Order {
    let event: Value = serde_json::from_str(event).unwrap_or_default();
    match (event["params"]["topic"].as_str(), event["params"]["session"].as_str()) {
        (Some("staleness"), Some(session)) => Order::Rows(session.to_owned()),
        (Some("staleness" | "decision" | "fork"), _) => Order::Look,
        _ => Order::All,
    }
}

impl Asker {
    /// Asks until nobody wants to know any more.
    pub(super) fn run(mut self) {
        let mut pause = Duration::ZERO;
        while self.wait(pause) {
            let looked = self.look();
            pause = if looked.is_ok() { TICK } else { PAUSE };
            let told = match looked {
                Ok(()) => News::Looked,
                Err(error) => {
                    // Another daemon may have another log.
                    (self.read, self.rows_due) = (None, true);
                    News::Away(Away { gone: is_away(&error), why: error.to_string() })
                }
            };
            if self.news.send(told).is_err() {
                return;
            }
        }
    }

    /// Waits for an order or until it is time; of orders that come close together, for the last.
    fn wait(&mut self, patience: Duration) -> bool {
        let mut by = Instant::now() + patience;
        let mut first = true;
        loop {
            match self.orders.recv_timeout(by.saturating_duration_since(Instant::now())) {
                Ok(order) => {
                    self.take(order);
                    if first {
                        by = Instant::now() + CALM;
                    }
                    first = false;
                }
                Err(RecvTimeoutError::Timeout) => return true,
                Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
    }

    fn take(&mut self, order: Order) {
        match order {
            Order::Look => {}
            Order::All => self.rows_due = true,
            Order::Rows(session) => self.rows_due |= self.selected().as_ref() == Some(&session),
        }
    }

    fn selected(&self) -> Option<String> {
        self.selected.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Everything that is shown, asked for on a connection of its own, so that none is ever idle.
    fn look(&mut self) -> Result<(), ClientError> {
        let mut client = Client::connect(&self.socket)?;
        let health = ask(&mut client, "status", &Status::default())?;
        self.tell(News::Health(Health::of(&health)));
        let listed = ask(&mut client, "context.list", &List::default())?;
        let sessions: Vec<Session> = list(&listed, "sessions").iter().map(Session::of).collect();
        let selected = self.selected().or_else(|| sessions.first().map(|session| session.name.clone()));
        let now = sessions.iter().find(|session| Some(&session.name) == selected.as_ref()).cloned();
        self.tell(News::Sessions(sessions));
        // Rows may be many, so they are asked for when they may have changed.
        if let Some(session) = now.as_ref().filter(|_| self.rows_due || self.rows != now) {
            match ask(
                &mut client,
                "status",
                &Status { session: Some(session.name.clone()), ..Status::default() },
            ) {
                Ok(answer) => self.tell(News::Rows(Rows::of(&session.name, &answer))),
                // Dropped since it was listed.
                Err(ClientError::Refused(refusal)) if refusal.word() == Some("no_session_context") => {}
                Err(error) => return Err(error),
            }
        }
        (self.rows, self.rows_due) = (now, false);
        self.read_log(&mut client)
    }

    fn read_log(&mut self, client: &mut Client) -> Result<(), ClientError> {
        let last = last_seq(client)?;
        let anew = self.read.is_none_or(|read| read > last);
        let mut after = if anew { last.saturating_sub(LINES) } else { self.read.unwrap_or(0) };
        let mut lines = Vec::new();
        while after < last {
            let found = page(client, after, PAGE_LEN.min(100))?;
            if found.is_empty() {
                break;
            }
            for raw in found {
                let line: Value = parsed(raw.get())?;
                after = line["seq"].as_u64().unwrap_or(u64::MAX);
                lines.push(Line::of(&line));
            }
        }
        self.read = Some(after.max(last));
        if anew || !lines.is_empty() {
            self.tell(News::Lines { lines, anew });
        }
        Ok(())
    }

    /// Whoever does not hear it has gone, which the next order tells.
    fn tell(&self, news: News) {
        let _ = self.news.send(news);
    }
}

fn ask(client: &mut Client, method: &str, params: &impl serde::Serialize) -> Result<Value, ClientError> {
    parsed(&client.ask(method, &json!(params))?)
}

fn parsed(text: &str) -> Result<Value, ClientError> {
    serde_json::from_str(text).map_err(|error| ClientError::Nonsense(error.to_string()))
}
