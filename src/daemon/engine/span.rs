//! What is traced of a batch: a span at level debug, and one line in it when the index has taken the batch.
//!
//! Counts only: what happened to whom is in the lines between, which stand in the same span. What a batch lets through,
//! which is the work of requests, is not in it.

use crate::world::Batch;
use std::time::Instant;
use tracing::Span;

/// Has a batch absorbed, which says how many sources its marks made suspect.
pub(super) fn traced<E>(batch: &Batch, absorb: impl FnOnce() -> Result<usize, E>) -> Result<(), E> {
    let span = span(batch);
    let _inside = span.enter();
    let began = (!span.is_disabled()).then(Instant::now);
    let touched = absorb()?;
    if let Some(began) = began {
        tracing::debug!(touched, micros = began.elapsed().as_micros() as u64, "taken");
    }
    Ok(())
}

/// The engine also wakes for requests and deadlines, and then nothing was taken.
fn span(batch: &Batch) -> Span {
    let marks = batch.moved.len() + batch.stirred.len() + batch.differing.len();
    let (answers, cookies, gap) = (batch.answers.len(), batch.cookies.len(), batch.gap.is_some());
    if marks + answers + cookies == 0 && !gap {
        return Span::none();
    }
    tracing::debug_span!("batch", marks, answers, cookies, gap)
}
