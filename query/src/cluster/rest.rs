//! The REST interface of a scheduler, at the port of its gRPC.

use crate::failure::Failure;
use http_body_util::{BodyExt, Limited};
use serde_json::Value;
use std::error::Error;
use tonic::body::Body;
use tonic::client::GrpcService;
use tonic::codegen::Bytes;
use tonic::codegen::http::{Method, Request, StatusCode};
use tonic::transport::Channel;

/// Largest answer, in bytes.
const MAX_ANSWER: usize = 256 << 20;

/// A connection to the interface.
pub struct Rest {
    /// `HOST:PORT`, for messages.
    pub address: String,
    /// The connection.
    pub channel: Channel,
}

impl Rest {
    /// A document; none if it is not found.
    ///
    /// # Errors
    /// If there is no answer, or it is not a document.
    pub async fn get(&self, path: &str) -> Result<Option<Value>, Failure> {
        let (status, body) = self.send(Method::GET, path).await?;
        match status {
            StatusCode::OK => {}
            StatusCode::NOT_FOUND => return Ok(None),
            other => return Err(self.not_checked(&format!("its answer has status {}", other.as_u16()))),
        }
        let document = serde_json::from_slice(&body);
        document.map(Some).map_err(|error| self.not_checked(&format!("its answer is not JSON: {error}")))
    }

    /// Asks the scheduler to cancel a job. Returns whether the job had not ended.
    ///
    /// # Errors
    /// If there is no answer, or the scheduler refuses.
    pub async fn cancel(&self, job: &str) -> Result<bool, Failure> {
        let (status, _) = self.send(Method::PATCH, &format!("/api/job/{job}")).await?;
        match status {
            StatusCode::OK => Ok(true),
            StatusCode::CONFLICT | StatusCode::NOT_FOUND => Ok(false),
            other => Err(Failure::new(format!("the scheduler refuses, with status {}", other.as_u16()))),
        }
    }

    /// Sends a request without content. Returns status and content of the answer.
    async fn send(&self, method: Method, path: &str) -> Result<(StatusCode, Bytes), Failure> {
        let silent = |error: &dyn Error| {
            let mut last = error;
            while let Some(source) = last.source() {
                last = source;
            }
            unreachable(&self.address, last.to_string())
        };
        let request = Request::builder().method(method).uri(path).body(Body::empty());
        let request = request.map_err(|error| self.not_checked(&error.to_string()))?;
        let mut channel = self.channel.clone();
        let ready = std::future::poll_fn(|context| GrpcService::<Body>::poll_ready(&mut channel, context));
        ready.await.map_err(|error| silent(&error))?;
        let response = GrpcService::call(&mut channel, request).await.map_err(|error| silent(&error))?;
        let status = response.status();
        let body = Limited::new(response.into_body(), MAX_ANSWER).collect().await;
        Ok((status, body.map_err(|error| silent(&*error))?.to_bytes()))
    }

    /// The error for results that cannot be checked.
    pub fn not_checked(&self, why: &str) -> Failure {
        Failure::new(format!("cannot check results of the scheduler at {}", self.address))
            .why(format!(
                "{why}\nBallista 55 counts rows twice after the loss of an executor, which its REST interface shows"
            ))
            .remedy("ballista-scheduler 55 without --disable-rest-api")
    }
}

/// The error of a scheduler that does not answer.
pub fn unreachable(address: &str, why: String) -> Failure {
    Failure::new(format!("cannot reach a scheduler at {address}"))
        .why(why)
        .remedy("ballista-scheduler --bind-host HOST --bind-port PORT (docs/howto/sql-cluster.md)")
}
