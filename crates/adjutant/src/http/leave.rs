//! A stream whose client asked that the run ends with it.

use adjutant_core::id::RunId;
use adjutant_core::run::command::Command;
use adjutant_core::run::event::Actor;
use axum::body::Body;
use axum::response::Response;
use futures::StreamExt;

use super::door::Access;
use super::server::Server;

/// Cancels the run when the body is dropped before its end; a run that has ended takes no notice.
pub(super) fn cancel_on_leave(server: &Server, access: Access, run: RunId, response: Response) -> Response {
    let (parts, body) = response.into_parts();
    let leaving = Leaving { server: server.clone(), access, run };
    let stream = body.into_data_stream().map(move |piece| {
        let _held = &leaving;
        piece
    });
    Response::from_parts(parts, Body::from_stream(stream))
}

struct Leaving {
    server: Server,
    access: Access,
    run: RunId,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        if *self.server.closing.borrow() {
            // It is the server that leaves, not the client.
            return;
        }
        let (server, access, run) = (self.server.clone(), self.access, self.run);
        tokio::spawn(async move {
            let by = Actor::User(access.user);
            let command = Command::Cancel { by, reason: "the client went away, as it had asked".to_owned() };
            if let Err(error) = server.engine.command(access.workspace, run, &command).await {
                tracing::warn!(%run, %error, "a run whose client went away was not cancelled");
            }
        });
    }
}
