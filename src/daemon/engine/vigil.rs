//! Eyes that stay open while there is no store, so that it can be told whether anything is seen at all.
//!
//! systemd's watchdog asks that. A full disk is not mended by another process, and one that is killed for it every half
//! minute answers nobody. The engine that is made afterwards goes on with these eyes.

use super::super::handle::Sight;
use super::keeping::Making;
use crate::world::{Cookie, World};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// When nothing happens.
const FAR: Duration = Duration::from_secs(60 * 60);

struct Asked {
    deadline: Instant,
    done: oneshot::Sender<Sight>,
}

/// The eyes, and who asks whether they see.
#[derive(Default)]
pub(super) struct Vigil {
    world: Option<World>,
    flight: Option<(Cookie, Vec<Asked>)>,
    queued: Vec<Asked>,
}

impl Vigil {
    pub(super) fn open(&mut self, making: &Making) {
        if self.world.is_none() {
            match making.open_eyes() {
                Ok(world) => self.world = Some(world),
                Err(error) => tracing::error!(%error, "nothing can be seen; tried again"),
            }
        }
    }

    /// The eyes, for an engine. Whoever still waits is refused.
    pub(super) fn end(self) -> Option<World> {
        self.world
    }

    pub(super) fn ask(&mut self, deadline: Instant, done: oneshot::Sender<Sight>) {
        self.queued.push(Asked { deadline, done });
    }

    /// Takes what happened, of which only cookies matter, and lets through whoever waited for them.
    pub(super) fn turn(&mut self) {
        if let Some(world) = &self.world {
            let batch = world.take();
            let landed = self.flight.take_if(|(cookie, _)| cookie.is_among(&batch));
            tell(landed.into_iter().flat_map(|(_, asked)| asked), Sight::Clear);
        }
        let now = Instant::now();
        let late = |asked: &mut Asked| asked.deadline <= now;
        tell(self.queued.extract_if(.., late).collect::<Vec<_>>(), Sight::Blind);
        if let Some((_, asked)) = &mut self.flight {
            tell(asked.extract_if(.., late).collect::<Vec<_>>(), Sight::Blind);
            if asked.is_empty() {
                // A watcher that does not answer is made anew when somebody asks next.
                (self.world, self.flight) = (None, None);
            }
        }
        self.launch();
    }

    fn launch(&mut self) {
        if let (None, Some(world), false) = (&self.flight, &mut self.world, self.queued.is_empty())
            && let Ok(cookie) = world.cookie()
        {
            self.flight = Some((cookie, std::mem::take(&mut self.queued)));
        }
    }

    /// When there is something to do even if nothing happens.
    pub(super) fn due(&self) -> Instant {
        let flying = self.flight.iter().flat_map(|(_, asked)| asked);
        let deadlines = self.queued.iter().chain(flying).map(|asked| asked.deadline);
        deadlines.min().unwrap_or_else(|| Instant::now() + FAR)
    }
}

fn tell(asked: impl IntoIterator<Item = Asked>, sight: Sight) {
    for Asked { done, .. } in asked {
        // Whoever asked may have gone away.
        let _ = done.send(sight);
    }
}
