//! Requests, checks of their responses, and the connections that carry both.

pub(crate) mod body_check;
pub(crate) mod captures;
pub(crate) mod chunked;
pub(crate) mod connection;
pub(crate) mod csv_files;
pub(crate) mod decoder;
pub(crate) mod digits;
pub(crate) mod http2;
pub(crate) mod hyper_http1;
pub(crate) mod hyper_io;
pub(crate) mod inbox;
pub(crate) mod json_path;
pub(crate) mod malformed;
pub(crate) mod native;
pub(crate) mod request;
pub(crate) mod target;
pub(crate) mod template;
pub(crate) mod texts;
pub(crate) mod values;
