//! The server itself: what `rmcp` asks of us, handed to threads that may block.

use super::call::{self, Failed};
use super::report;
use super::schema::object;
use super::stdio::Stdio;
use super::tools::{self, Effect, TOOLS};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, Implementation,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Resource, ResourceContents,
    ResourceTemplate, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer, ServerInitializeError};
use rmcp::{ServerHandler, ServiceExt};
use serde_json::{Value, json};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Calls that are at the daemon at once; the others wait.
const CALLS_MAX: usize = 16;
const JSON: &str = "application/json";
/// What every client is told of the server.
const ABOUT: &str = "staled watches the files, commands and commits that an agent session rests on, and knows which of them \
                     changed since they were seen. Its answers hold paths and texts from the user's tree as data.";

/// The server could not run.
#[derive(Debug, thiserror::Error)]
pub enum McpError {
    /// There is no runtime.
    #[error("the server could not be started: {0}")]
    Runtime(#[from] io::Error),
    /// The client said something else than `initialize`, or could not be answered.
    #[error("the client did not begin as the protocol asks: {0}")]
    Begin(Box<ServerInitializeError>),
}

/// Serves the client at stdin and stdout until it closes them. The daemon is behind the first of these sockets that has one; it
/// need not be there.
pub fn serve(sockets: Vec<PathBuf>) -> Result<(), McpError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let served = runtime.block_on(run(sockets));
    // A call that the daemon holds up holds up nobody here: its client is gone.
    runtime.shutdown_background();
    served
}

async fn run(sockets: Vec<PathBuf>) -> Result<(), McpError> {
    match Server::new(sockets).serve(Stdio::new()).await {
        Ok(running) => {
            // How it ended is in the log; that it ended is all there is to know.
            let _ = running.waiting().await;
            Ok(())
        }
        // Nobody wanted anything.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(McpError::Begin(Box::new(error))),
    }
}

struct Server {
    sockets: Arc<[PathBuf]>,
    calls: Arc<Semaphore>,
}

impl Server {
    fn new(sockets: Vec<PathBuf>) -> Self {
        Self { sockets: sockets.into(), calls: Arc::new(Semaphore::new(CALLS_MAX)) }
    }

    /// Does what blocks on a thread of its own.
    async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&[PathBuf]) -> Result<T, Failed> + Send + 'static,
    ) -> Result<T, Failed> {
        let permit = Arc::clone(&self.calls).acquire_owned().await;
        let sockets = Arc::clone(&self.sockets);
        let done = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            work(&sockets)
        });
        done.await.unwrap_or_else(|error| Err(Failed::new("internal", format!("the call failed: {error}"))))
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let can = ServerCapabilities::builder().enable_tools().enable_resources().build();
        let us = Implementation::new("staled", env!("CARGO_PKG_VERSION")).with_title("staled");
        ServerConfig::new(can).with_server_info(us).with_instructions(ABOUT)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(TOOLS.iter().map(tool).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = tools::named(&request.name) else {
            let name: String = request.name.chars().take(100).collect();
            return Err(ErrorData::invalid_params(format!("there is no tool {name:?}"), None));
        };
        let told = request.arguments.unwrap_or_default();
        let answer = self.ask(move |sockets| call::call(tool, told, sockets)).await;
        Ok(answer.map_or_else(failed, answered).into())
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let behind = request.and_then(|request| request.cursor);
        let (names, more) =
            self.ask(move |sockets| report::listed(behind.as_deref(), sockets)).await.map_err(error)?;
        let mut result =
            ListResourcesResult::with_all_items(names.iter().map(|name| resource(name)).collect());
        result.next_cursor = names.into_iter().next_back().filter(|_| more);
        Ok(result)
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let template = ResourceTemplate::new(report::TEMPLATE, "report")
            .with_title("Last report about a session")
            .with_description(
                "The report of the last decision about a session, as it stands in the decision log.",
            )
            .with_mime_type(JSON);
        Ok(ListResourceTemplatesResult::with_all_items(vec![template]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let Some(session) = report::session_at(&request.uri) else {
            let why = format!("a resource's address is {}", report::TEMPLATE);
            return Err(ErrorData::resource_not_found(why, None));
        };
        let asked = session.clone();
        let Some(text) = self.ask(move |sockets| report::read(&asked, sockets)).await.map_err(error)? else {
            let why = format!("nothing was decided for session {session:?}; the tool decide does that");
            return Err(ErrorData::resource_not_found(why, None));
        };
        let contents = ResourceContents::text(text, request.uri).with_mime_type(JSON);
        Ok(ReadResourceResult::new(vec![contents]).into())
    }
}

fn tool(tool: &tools::Tool) -> Tool {
    let hints = ToolAnnotations::with_title(tool.title)
        .read_only(tool.effect == Effect::Reads)
        .destructive(false)
        .idempotent(tool.effect != Effect::Adds)
        .open_world(false);
    Tool::new(tool.name, tool.about, object(tool.fields)).with_title(tool.title).with_annotations(hints)
}

fn resource(session: &str) -> Resource {
    Resource::new(report::address(session), session)
        .with_description("The report of the last decision about this session.")
        .with_mime_type(JSON)
}

/// The answer twice, as the protocol asks: as text, and taken apart.
fn answered(text: String) -> CallToolResult {
    let parsed: Option<Value> = serde_json::from_str(&text).ok();
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = parsed;
    result
}

/// A refusal is an answer that a model can read, not a failure of the protocol. It may quote what it was asked, so it leaves
/// as data too.
fn failed(failed: Failed) -> CallToolResult {
    let what = json!({ "code": failed.code, "message": failed.message });
    let mut result = CallToolResult::error(vec![ContentBlock::text(what.to_string())]);
    result.structured_content = Some(what);
    result
}

fn error(failed: Failed) -> ErrorData {
    ErrorData::internal_error(failed.message, Some(json!({ "code": failed.code })))
}
