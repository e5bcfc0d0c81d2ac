//! Byte streams: one message a line, both eras on one stream.

mod ask;
mod bad;
mod batch;
mod cancel;
mod ends;
mod era;
mod frame;
mod legacy;
mod listen;
mod load;
mod sending;

use crate::harness::Wire;

pub fn register(wire: &mut Wire) {
    ask::register(wire);
    frame::register(wire);
    bad::register(wire);
    cancel::register(wire);
    era::register(wire);
    batch::register(wire);
    legacy::register(wire);
    listen::register(wire);
    sending::register(wire);
    load::register(wire);
    ends::register(wire);
}
