//! What a state belongs to.

use crate::principal::Principal;
use crate::protocol::scan::canonical;

/// The members of `params` that change from round to round, or with every request.
const LEFT_OUT: [&str; 3] = ["_meta", "inputResponses", "requestState"];

/// What a state belongs to: it opens for no other principal, method or params.
///
/// Of `params` counts what they say, not how they are written: a client may write them anew for each round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Binding<'a> {
    pub(crate) principal: Option<&'a Principal>,
    pub(crate) method: &'a str,
    /// Their JSON. Absent ones are the same as `{}`.
    pub(crate) params: Option<&'a [u8]>,
}

impl Binding<'_> {
    /// All of it behind a head of fixed length, so that no two bindings are one text. `None` where the params are no
    /// JSON.
    pub(super) fn with(&self, head: &[u8]) -> Option<Vec<u8>> {
        let params = self.params.unwrap_or(b"{}");
        let mut data = Vec::with_capacity(head.len() + self.method.len() + params.len() + 64);
        data.extend_from_slice(head);
        match self.principal {
            Some(principal) => {
                data.push(1);
                part(principal.as_str(), &mut data);
            }
            None => data.push(0),
        }
        part(self.method, &mut data);
        canonical::write(params, &LEFT_OUT, &mut data).ok()?;
        Some(data)
    }
}

fn part(text: &str, data: &mut Vec<u8>) {
    data.extend_from_slice(&(text.len() as u64).to_be_bytes());
    data.extend_from_slice(text.as_bytes());
}
