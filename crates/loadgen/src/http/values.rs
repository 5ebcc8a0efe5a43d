//! What a placeholder stands for, and its text in one request.

/// What a placeholder stands for.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// The value of a session with this index, captured by an earlier step.
    Captured(usize),
}

/// What the values of one request depend on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inputs<'a> {
    /// The captured values of its session.
    pub captured: &'a [Option<Vec<u8>>],
}

impl Value {
    /// Appends the value's text.
    pub fn write(&self, inputs: &Inputs<'_>, out: &mut Vec<u8>) {
        match self {
            Self::Captured(index) => {
                let value = inputs.captured.get(*index).and_then(Option::as_ref);
                out.extend_from_slice(value.map_or(&[][..], Vec::as_slice));
            }
        }
    }
}
