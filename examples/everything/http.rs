//! The server on HTTP: the endpoint, and who may talk to it, beside the page.

use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use axum::serve::ListenerExt;
use mcp_transport::{EventStore, Limits, StreamableHttpBuilder, StreamableHttpService};
use tokio::net::TcpListener;

use crate::log::Log;
use crate::{Everything, page};

pub async fn serve(
    everything: Everything,
    address: &str,
    options: impl Iterator<Item = String>,
) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    // In a session nothing is lost with a connection: every answer is a stream, and every stream can be resumed.
    let builder = StreamableHttpService::builder(everything)
        .event_store(EventStore::InMemory)
        .limits(Limits::default().commit_after(Duration::ZERO));
    let service = with_options(with_names(builder, address), options)?.build()?;
    println!("listening on http://{address}/mcp");

    let app = page::routes().route_service("/mcp", service);
    // Without it, small answers wait for the peer's acknowledgement.
    axum::serve(listener.tap_io(|socket| drop(socket.set_nodelay(true))), app).await?;
    Ok(())
}

/// The page of this server may talk to it. On loopback it also knows all its names, so that no page can give it one of
/// its own (DNS rebinding); elsewhere `--allow-host` lists them.
fn with_names(builder: StreamableHttpBuilder, address: SocketAddr) -> StreamableHttpBuilder {
    let builder = builder.own_address(address);
    match address.ip().is_loopback() {
        true => {
            builder.allow_host("localhost").allow_host("127.0.0.1").allow_host("[::1]").allow_host(address.to_string())
        }
        false => builder,
    }
}

fn with_options(
    mut builder: StreamableHttpBuilder,
    mut options: impl Iterator<Item = String>,
) -> Result<StreamableHttpBuilder, String> {
    while let Some(option) = options.next() {
        let mut value = || options.next().ok_or_else(|| format!("{option} needs a value"));
        builder = match option.as_str() {
            "--allow-origin" => builder.allow_origin(value()?),
            "--allow-host" => builder.allow_host(value()?),
            "--log" => builder.observer(Log),
            _ => return Err(format!("{option} is not known here")),
        };
    }
    Ok(builder)
}
