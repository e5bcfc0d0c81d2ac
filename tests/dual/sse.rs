//! Events, each as soon as its closing blank line is there and not before.

/// Collects bytes until they are events.
#[derive(Default)]
pub struct Events {
    pending: Vec<u8>,
    data: Option<String>,
}

impl Events {
    /// Adds what has arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
    }

    /// The data of the next event that is whole. Comments and events without data are passed over.
    pub fn next(&mut self) -> Option<String> {
        while let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.pending.drain(..=end).take(end).collect();
            let line = String::from_utf8(line).expect("an event in UTF-8");
            let line = line.strip_suffix('\r').unwrap_or(&line);
            if line.is_empty() {
                if let Some(data) = self.data.take() {
                    return Some(data);
                }
            } else if let Some(value) = line.strip_prefix("data:") {
                let value = value.strip_prefix(' ').unwrap_or(value);
                match &mut self.data {
                    Some(data) => *data = format!("{data}\n{value}"),
                    None => self.data = Some(value.to_owned()),
                }
            }
        }
        None
    }
}

#[test]
fn an_event_is_there_with_its_blank_line() {
    let mut events = Events::default();
    events.push(b": hello\n\nevent: message\ndata: 1\ndata: 2\n");
    assert_eq!(events.next(), None);
    events.push(b"\ndata: 3\r\n\r\ndata: 4\n");
    assert_eq!(events.next().as_deref(), Some("1\n2"));
    assert_eq!(events.next().as_deref(), Some("3"));
    assert_eq!(events.next(), None);
}
