//! Who is told when a thread dies of a panic.
//!
//! A dead thread is silent, and silence must not pass for news that there are none. So whoever starts a thread that
//! others rely on throws a dart: it hits when the thread unwinds, and tells its name.

use std::fmt;
use std::sync::Arc;

/// Told, on the dying thread, its name. By default nobody is.
#[derive(Clone)]
pub struct Died(Arc<dyn Fn(&str) + Send + Sync>);

impl Died {
    /// `tell` should only pass the name on: its caller is unwinding.
    #[must_use]
    pub fn new(tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }

    /// Of a panic that was caught, but that left its thread's work undone.
    pub fn tell(&self, thread: &str) {
        (self.0)(thread);
    }

    /// Kept by a thread for as long as it lives.
    #[must_use]
    pub fn dart(&self, thread: &str) -> Dart {
        Dart { died: self.clone(), thread: thread.to_owned() }
    }
}

impl Default for Died {
    fn default() -> Self {
        Self::new(|_| {})
    }
}

impl fmt::Debug for Died {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Died").finish_non_exhaustive()
    }
}

/// Tells of its thread when that unwinds, and nothing when it ends well.
#[derive(Debug)]
pub struct Dart {
    died: Died,
    thread: String,
}

impl Dart {
    /// The name that it would tell.
    #[must_use]
    pub fn thread(&self) -> &str {
        &self.thread
    }
}

impl Drop for Dart {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.died.tell(&self.thread);
        }
    }
}

/// A point at which a test can have a thread die: `STALED_FAULT=THREAD:FILE` has it panic here as soon as that file
/// exists. No other way makes these threads die, and what follows is what must be tested. Builds without debug
/// assertions, which is every build that anybody installs, do not know the variable.
pub fn fault(thread: &str) {
    #[cfg(debug_assertions)]
    {
        static ASKED: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
        let asked = ASKED.get_or_init(|| std::env::var("STALED_FAULT").ok());
        let file = asked.as_ref().and_then(|asked| asked.strip_prefix(thread)?.strip_prefix(':'));
        assert!(!file.is_some_and(|file| std::path::Path::new(file).exists()), "STALED_FAULT asked for it");
    }
    #[cfg(not(debug_assertions))]
    let _ = thread;
}
