//! A page that talks to `/mcp` from a browser, in both eras. What is in `page/` is served as it lies there.

use axum::Router;
use axum::http::header;
use axum::routing::get;

/// The files, by the path they are served at.
const FILES: [(&str, &str, &str); 8] = [
    ("/", "text/html; charset=utf-8", include_str!("page/index.html")),
    ("/page.css", "text/css; charset=utf-8", include_str!("page/page.css")),
    ("/page.js", "text/javascript; charset=utf-8", include_str!("page/page.js")),
    ("/forms.js", "text/javascript; charset=utf-8", include_str!("page/forms.js")),
    ("/headers.js", "text/javascript; charset=utf-8", include_str!("page/headers.js")),
    ("/questions.js", "text/javascript; charset=utf-8", include_str!("page/questions.js")),
    ("/show.js", "text/javascript; charset=utf-8", include_str!("page/show.js")),
    ("/wire.js", "text/javascript; charset=utf-8", include_str!("page/wire.js")),
];

/// What the page may do: run its own scripts, show what a tool returns, and connect to whichever server it is told to.
/// Nobody may put it in a frame, where a visitor could be led to press its buttons.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; media-src data:; \
    connect-src http: https:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The routes of the page. It has no secret, so it is served to anyone, under any name; who may talk to `/mcp` is
/// decided there.
pub fn routes() -> Router {
    FILES.into_iter().fold(Router::new(), |routes, (path, content_type, text)| {
        let headers = [
            (header::CONTENT_TYPE, content_type),
            (header::CONTENT_SECURITY_POLICY, POLICY),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::REFERRER_POLICY, "no-referrer"),
            (header::CACHE_CONTROL, "no-cache"),
        ];
        routes.route(path, get(async move || (headers, text)))
    })
}
