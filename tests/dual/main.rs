//! A client of both eras that nobody made lenient, against servers of every policy, servers that start, drain or are
//! silent, and connections that are cut at every byte.
//!
//! What it shows each time: the client ends in the right era, it never hangs, and the handler's own record says how often
//! a call ran. No call that was answered runs twice.
//!
//! Most of it is in memory under a clock that moves only when all is quiet, so that "at once" can be asserted.

mod client;
mod cuts;
mod eras;
mod http1;
mod judge;
mod live;
mod proxy;
mod server;
mod sse;
mod unsettled;
