//! The verbs, one file each, through the socket.

mod decide;
