//! HTTP/2: one connection with several concurrent streams, framed by h2.

pub(crate) mod connection;
mod frames;
mod stream;
mod transport;
mod wakes;
