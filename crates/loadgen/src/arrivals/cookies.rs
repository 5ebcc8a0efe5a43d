//! The cookies of one session: name and value, sent with every later request of the session.
//!
//! A session talks to one server and lasts minutes, so domain, path, expiry date and other
//! attributes are ignored. Only a `Max-Age` of 0 or less removes a cookie, as on logout.

use http::HeaderValue;

/// Cookies beyond these limits are ignored.
const MAX_COOKIES: usize = 100;
const MAX_COOKIE_BYTES: usize = 4_096;

/// The cookies that a session has received.
#[derive(Debug, Default)]
pub(crate) struct CookieJar {
    cookies: Vec<(Vec<u8>, Vec<u8>)>,
}

impl CookieJar {
    /// Applies the value of a `Set-Cookie` field.
    pub fn take(&mut self, set_cookie: &[u8]) {
        let mut parts = set_cookie
            .split(|byte| *byte == b';')
            .map(<[u8]>::trim_ascii);
        let Some((name, value)) = parts.next().and_then(|pair| split_at_equals(pair)) else {
            return;
        };

        if name.is_empty() || name.len() + value.len() > MAX_COOKIE_BYTES {
            return;
        }

        let place = self.cookies.iter().position(|(known, _)| known == name);
        match (place, parts.any(is_removal)) {
            (Some(place), true) => drop(self.cookies.remove(place)),
            (Some(place), false) => self.cookies[place].1 = value.to_vec(),
            (None, false) if self.cookies.len() < MAX_COOKIES => {
                self.cookies.push((name.to_vec(), value.to_vec()));
            }
            (None, _) => {}
        }
    }

    /// The value of a `Cookie` field with all cookies after those in `before`; `None` if the
    /// session has no cookies.
    pub fn field<'a>(&self, before: impl Iterator<Item = &'a [u8]>) -> Option<HeaderValue> {
        if self.cookies.is_empty() {
            return None;
        }

        let mut field = before.collect::<Vec<_>>().join(&b"; "[..]);
        for (name, value) in &self.cookies {
            if !field.is_empty() {
                field.extend_from_slice(b"; ");
            }
            field.extend_from_slice(name);
            field.push(b'=');
            field.extend_from_slice(value);
        }

        HeaderValue::from_bytes(&field).ok()
    }
}

fn split_at_equals(pair: &[u8]) -> Option<(&[u8], &[u8])> {
    let place = pair.iter().position(|byte| *byte == b'=')?;
    Some((
        pair[..place].trim_ascii_end(),
        pair[place + 1..].trim_ascii_start(),
    ))
}

fn is_removal(attribute: &[u8]) -> bool {
    let Some((name, value)) = split_at_equals(attribute) else {
        return false;
    };
    let seconds = std::str::from_utf8(value)
        .ok()
        .and_then(|text| text.parse::<i64>().ok());
    name.eq_ignore_ascii_case(b"max-age") && seconds.is_some_and(|seconds| seconds <= 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(set_cookies: &[&str]) -> Option<String> {
        let mut jar = CookieJar::default();
        set_cookies
            .iter()
            .for_each(|text| jar.take(text.as_bytes()));
        jar.field(std::iter::empty())
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
    fn the_size_of_a_jar_is_limited() {
        let mut jar = CookieJar::default();
        (0..2 * MAX_COOKIES).for_each(|name| jar.take(format!("{name}=1").as_bytes()));
        jar.take(format!("long={}", "x".repeat(MAX_COOKIE_BYTES)).as_bytes());
        assert_eq!(jar.cookies.len(), MAX_COOKIES);
    }

    #[test]
    fn cookies_of_the_request_come_first() {
        let mut jar = CookieJar::default();
        let before = ["theme=dark", "beta=1"].map(str::as_bytes);

        assert_eq!(jar.field(before.into_iter()), None);

        jar.take(b"id=1");
        assert_eq!(
            jar.field(before.into_iter()),
            Some(HeaderValue::from_static("theme=dark; beta=1; id=1"))
        );
    }
}
