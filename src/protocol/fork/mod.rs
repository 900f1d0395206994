//! What is said of forks: the questions, and the record of one fork, which the journal keeps and answers are made of.

pub mod answer;
pub mod ask;
pub mod record;

pub use ask::Ask;
pub use record::Fork;
