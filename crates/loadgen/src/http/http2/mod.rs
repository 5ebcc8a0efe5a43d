//! HTTP/2: one connection with several concurrent streams, with native framing.

pub(crate) mod connection;
mod flood;
mod frames;
mod hpack;
mod huffman;
mod output;
pub(crate) mod request_head;
mod response_head;
