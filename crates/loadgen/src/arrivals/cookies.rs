//! The cookies of one session (RFC 6265), sent with its later requests to their paths.
//!
//! A session talks to one server, so `Domain`, `Secure` and `SameSite` are ignored.

use std::cmp::Reverse;
use std::time::{Duration, SystemTime};

use http::HeaderValue;

use crate::plan::timestamp;

/// Cookies beyond these limits are ignored.
const MAX_COOKIES: usize = 100;
const MAX_COOKIE_BYTES: usize = 4_096;

/// The cookies that a session has received.
#[derive(Debug, Default)]
pub(crate) struct CookieJar {
    /// The longest paths first; of equal ones, the oldest cookie (section 5.4).
    cookies: Vec<Cookie>,
}

#[derive(Debug)]
struct Cookie {
    name: Vec<u8>,
    value: Vec<u8>,
    path: Vec<u8>,
    /// `None`: until the end of the session.
    expires: Option<SystemTime>,
}

impl CookieJar {
    /// Applies the value of a `Set-Cookie` field in a response to a request for `path`.
    pub fn take(&mut self, set_cookie: &[u8], path: &[u8]) {
        let Some(cookie) = Cookie::parse(set_cookie, path) else {
            return;
        };

        let is_same = |known: &Cookie| known.name == cookie.name && known.path == cookie.path;
        let known = self.cookies.iter().position(is_same);
        match (known, cookie.has_expired(SystemTime::now())) {
            (Some(place), true) => drop(self.cookies.remove(place)),
            (Some(place), false) => self.cookies[place] = cookie,
            (None, false) if self.cookies.len() < MAX_COOKIES => {
                self.cookies.push(cookie);
                self.cookies.sort_by_key(|one| Reverse(one.path.len()));
            }
            (None, _) => {}
        }
    }

    /// The value of a `Cookie` field in a request for `path`: the cookies in `before`, then those
    /// of the session; `None` if the session has none for this path.
    pub fn field<'a>(
        &self,
        path: &[u8],
        before: impl Iterator<Item = &'a [u8]>,
    ) -> Option<HeaderValue> {
        let now = SystemTime::now();
        let is_sent = |cookie: &&Cookie| cookie.is_for(path) && !cookie.has_expired(now);
        let mut sent = self.cookies.iter().filter(is_sent).peekable();
        sent.peek()?;

        let pairs = sent.map(|cookie| [&cookie.name[..], b"=", &cookie.value].concat());
        let all: Vec<_> = before.map(<[u8]>::to_vec).chain(pairs).collect();
        HeaderValue::from_bytes(&all.join(&b"; "[..])).ok()
    }
}

impl Cookie {
    /// Section 5.2; `Max-Age` has precedence over `Expires`.
    fn parse(set_cookie: &[u8], request_path: &[u8]) -> Option<Self> {
        let mut parts = set_cookie
            .split(|byte| *byte == b';')
            .map(<[u8]>::trim_ascii);
        let (name, value) = split_at_equals(parts.next()?)?;
        if name.is_empty() || name.len() + value.len() > MAX_COOKIE_BYTES {
            return None;
        }

        let (mut path, mut expires, mut ends) = (default_path(request_path), None, None);
        for (attribute, value) in parts.filter_map(split_at_equals) {
            let text = std::str::from_utf8(value).unwrap_or_default();
            if attribute.eq_ignore_ascii_case(b"path") && value.starts_with(b"/") {
                path = value;
            } else if attribute.eq_ignore_ascii_case(b"expires") {
                expires = timestamp::cookie_date_unix_s(text)
                    .map(since_1970)
                    .or(expires);
            } else if attribute.eq_ignore_ascii_case(b"max-age") {
                ends = text.parse().ok().map(after_s).or(ends);
            }
        }

        Some(Self {
            name: name.to_vec(),
            value: value.to_vec(),
            path: path.to_vec(),
            expires: ends.or(expires),
        })
    }

    fn has_expired(&self, now: SystemTime) -> bool {
        self.expires.is_some_and(|time| time <= now)
    }

    /// Section 5.1.4.
    fn is_for(&self, request_path: &[u8]) -> bool {
        request_path
            .strip_prefix(&self.path[..])
            .is_some_and(|rest| {
                rest.is_empty() || rest.starts_with(b"/") || self.path.ends_with(b"/")
            })
    }
}

/// The path of a cookie without `Path`: the request's directory (section 5.1.4).
fn default_path(request_path: &[u8]) -> &[u8] {
    match request_path.iter().rposition(|byte| *byte == b'/') {
        None | Some(0) => b"/",
        Some(end) => &request_path[..end],
    }
}

fn since_1970(unix_s: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(unix_s)
}

/// A cookie that outlives any load is kept to its end.
fn after_s(seconds: i64) -> SystemTime {
    let year_s = 366 * 86_400;
    match u64::try_from(seconds) {
        Ok(seconds) => SystemTime::now() + Duration::from_secs(seconds.min(year_s)),
        Err(_) => SystemTime::UNIX_EPOCH,
    }
}

fn split_at_equals(pair: &[u8]) -> Option<(&[u8], &[u8])> {
    let place = pair.iter().position(|byte| *byte == b'=')?;
    Some((
        pair[..place].trim_ascii_end(),
        pair[place + 1..].trim_ascii_start(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The field of a request for `/a/b` after responses to a request for `/a/in`.
    fn field(set_cookies: &[&str]) -> Option<String> {
        let mut jar = CookieJar::default();
        set_cookies
            .iter()
            .for_each(|text| jar.take(text.as_bytes(), b"/a/in"));
        jar.field(b"/a/b", std::iter::empty())
            .map(|value| value.to_str().expect("text").to_owned())
    }

    #[test]
    fn cookies_are_kept_replaced_and_removed() {
        for (set_cookies, expected) in [
            (vec![], None),
            (vec!["id=1; Path=/; HttpOnly"], Some("id=1")),
            (
                vec!["id=1", "lang = en ; Max-Age=60"],
                Some("id=1; lang=en"),
            ),
            (vec!["id=1", "id=2"], Some("id=2")),
            (vec!["id=1", "a=b", "id=; max-age=0"], Some("a=b")),
            (vec!["id=x; Max-Age=-1"], None),
            (vec!["a==b=="], Some("a==b==")),
            (vec!["nonsense", "=1", ""], None),
        ] {
            assert_eq!(field(&set_cookies).as_deref(), expected, "{set_cookies:?}");
        }
    }

    #[test]
    fn an_expiry_date_in_the_past_removes_a_cookie() {
        for date in [
            "Thu, 01 Jan 1970 00:00:00 GMT",
            "Thu, 01-Jan-1970 00:00:01 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
        ] {
            let removal = format!("id=; Expires={date}");
            assert_eq!(field(&["id=1", &removal]), None, "{date}");
        }
        for kept in [
            "id=1; Expires=Thu, 01 Jan 2150 00:00:00 GMT",
            "id=1; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT",
            "id=1; Expires=soon",
        ] {
            assert_eq!(field(&[kept]).as_deref(), Some("id=1"), "{kept}");
        }
    }

    #[test]
    fn a_cookie_is_sent_to_its_path() {
        for (set_cookies, expected) in [
            (vec!["id=1; Path=/admin"], None),
            (vec!["id=1; Path=/a/"], Some("id=1")),
            (vec!["id=1; Path=/a/b"], Some("id=1")),
            (vec!["id=1; Path=/a/bc"], None),
            (vec!["id=1; Path=elsewhere"], Some("id=1")),
            (vec!["id=1; Path=/", "id=2"], Some("id=2; id=1")),
            (vec!["id=1; Path=/", "id=2; Path=/; Max-Age=0"], None),
        ] {
            assert_eq!(field(&set_cookies).as_deref(), expected, "{set_cookies:?}");
        }
    }

    #[test]
    fn the_size_of_a_jar_is_limited() {
        let mut jar = CookieJar::default();
        (0..2 * MAX_COOKIES).for_each(|name| jar.take(format!("{name}=1").as_bytes(), b"/"));
        jar.take(
            format!("long={}", "x".repeat(MAX_COOKIE_BYTES)).as_bytes(),
            b"/",
        );
        assert_eq!(jar.cookies.len(), MAX_COOKIES);
    }

    #[test]
    fn cookies_of_the_request_come_first() {
        let mut jar = CookieJar::default();
        let before = ["theme=dark", "beta=1"].map(str::as_bytes);

        assert_eq!(jar.field(b"/", before.into_iter()), None);

        jar.take(b"id=1", b"/");
        assert_eq!(
            jar.field(b"/", before.into_iter()),
            Some(HeaderValue::from_static("theme=dark; beta=1; id=1"))
        );
    }
}
