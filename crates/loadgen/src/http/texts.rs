//! The texts of a request that may contain placeholders, and their replacement by stand-ins.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::base::error::LoadError;
use crate::http::template::{Place, StandIns, Use};
use crate::http::values::{Inputs, Names};
use crate::plan::RequestPlan;
use crate::plan::placeholders::{self, Part};

/// Names and values.
type Fields = [(String, String)];

/// The texts of one request.
pub(crate) struct Texts<'a> {
    pub url: Cow<'a, str>,
    pub headers: Cow<'a, Fields>,
    pub default_headers: Cow<'a, Fields>,
    pub body_base64: Option<Cow<'a, str>>,
    /// The stand-ins for their placeholders; `None` without placeholders.
    pub stand_ins: Option<StandIns>,
}

impl<'a> Texts<'a> {
    /// The texts, unchanged.
    pub fn of(request: &'a RequestPlan, default_headers: &'a Fields) -> Self {
        Self {
            url: Cow::Borrowed(&request.url),
            headers: Cow::Borrowed(&request.headers),
            default_headers: Cow::Borrowed(default_headers),
            body_base64: request.body_base64.as_deref().map(Cow::Borrowed),
            stand_ins: None,
        }
    }

    /// The texts, with placeholders replaced by stand-ins. `variables`: those that earlier steps of
    /// the session have captured; `None` outside of sessions.
    ///
    /// # Errors
    /// A message that explains what is wrong with a placeholder.
    pub fn filled(
        request: &'a RequestPlan,
        default_headers: &'a Fields,
        (names, variables): (&mut Names, Option<&[String]>),
    ) -> Result<Self, String> {
        let texts = Self::of(request, default_headers);
        let body = texts.body();
        if !texts.have_placeholders(body.as_deref()) {
            return Ok(texts);
        }

        // Names have no placeholders, but a stand-in must not occur in them either.
        let fields = texts.headers.iter().chain(texts.default_headers.iter());
        let names_of_fields: Vec<_> = fields
            .flat_map(|(name, _)| [name.clone(), name.to_ascii_lowercase()])
            .collect();
        let all = texts.all(body.as_deref()).into_iter();
        let all = all.chain(names_of_fields.iter().map(String::as_str));
        let mut replacing = Replacing {
            stand_ins: StandIns::apart_from(all),
            names,
            variables,
        };
        let headers = replacing.fields(&texts.headers)?;
        // Default fields that the request overrides are not sent.
        let is_sent = |(name, _): &&(String, String)| {
            !headers
                .iter()
                .any(|(known, _)| known.eq_ignore_ascii_case(name))
        };
        let inherited: Vec<_> = default_headers.iter().filter(is_sent).cloned().collect();
        Ok(Self {
            url: Cow::Owned(replacing.text(&texts.url, Place::Target)?),
            default_headers: Cow::Owned(replacing.fields(&inherited)?),
            headers: Cow::Owned(headers),
            body_base64: match &body {
                Some(body) => Some(Cow::Owned(
                    STANDARD.encode(replacing.text(body, Place::Body)?),
                )),
                None => texts.body_base64.clone(),
            },
            stand_ins: Some(replacing.stand_ins).filter(|stand_ins| !stand_ins.is_empty()),
        })
    }

    /// The body, if it is text; a binary body has no placeholders.
    fn body(&self) -> Option<String> {
        let bytes = STANDARD.decode(self.body_base64.as_deref()?).ok()?;
        String::from_utf8(bytes).ok()
    }

    fn all<'b>(&'b self, body: Option<&'b str>) -> Vec<&'b str> {
        let fields = self.headers.iter().chain(self.default_headers.iter());
        let values = fields.map(|(_, value)| value.as_str());
        values.chain([&*self.url]).chain(body).collect()
    }

    fn have_placeholders(&self, body: Option<&str>) -> bool {
        self.all(body).into_iter().any(placeholders::has_any)
    }
}

/// The text as the first request of a load sends it in this part of the request.
///
/// # Errors
/// [`LoadError::Plan`] that explains what is wrong with a placeholder.
pub fn first_text(text: &str, place: Place) -> Result<String, LoadError> {
    let mut names = Names::new(0);
    let inputs = Inputs {
        place: 0,
        captured: &[],
    };
    let mut bytes = Vec::with_capacity(text.len());
    for part in placeholders::parts(text).map_err(LoadError::Plan)? {
        match part {
            Part::Text(text) => bytes.extend_from_slice(text.as_bytes()),
            Part::Placeholder(name) => {
                let value = names.value_of(name, None).map_err(LoadError::Plan)?;
                Use { value, place }.write(&inputs, &mut bytes);
            }
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Replaces placeholders, one text after the other.
struct Replacing<'a> {
    stand_ins: StandIns,
    names: &'a mut Names,
    variables: Option<&'a [String]>,
}

impl Replacing<'_> {
    fn text(&mut self, text: &str, place: Place) -> Result<String, String> {
        let (names, variables) = (&mut *self.names, self.variables);
        let mut value_of = |name: &str| names.value_of(name, variables);
        self.stand_ins.replace(text, place, &mut value_of)
    }

    fn fields(&mut self, fields: &Fields) -> Result<Vec<(String, String)>, String> {
        fields
            .iter()
            .map(|(name, value)| Ok((name.clone(), self.text(value, Place::Field)?)))
            .collect()
    }
}
