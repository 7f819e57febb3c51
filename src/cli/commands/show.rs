//! `sessions show`: shows one session.

use schemas::event::Relation;
use schemas::tool::details::DetailArgs;
use schemas::tool::list::Session;

use crate::cli::context::CommandContext;
use crate::cli::exit::{CommandOutcome, CommandResult};
use crate::cli::paging::OnePageFlags;
use crate::cli::screens::pick_session;
use crate::cli::tool_flags::ToolFlags;
use crate::output::{ConversationView, Show as _};
use crate::resume::{AgentCommand, ResumedSession};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ShowFlags {
    #[command(flatten)]
    args: ToolFlags<DetailArgs>,
    #[command(flatten)]
    pages: OnePageFlags,
}

impl ShowFlags {
    /// True if nothing but the session is named, so that a terminal shows the conversation.
    fn is_conversation(&self) -> bool {
        let args = &self.args.0;
        args.detail_level.is_none()
            && args.turns.is_none()
            && args.last.is_none()
            && args.limit.is_none()
            && !self.pages.is_given()
    }
}

/// Shows a session as a conversation.
fn show_conversation(args: &DetailArgs, context: &CommandContext<'_>) -> CommandResult {
    let tools = context.create_priced_tools()?;
    let transcript = tools.read_transcript(&args.session_id, &context.call)?;
    let resume_line = describe_resume(&transcript.session);
    let view = ConversationView::new(transcript, resume_line, args.include_reasoning == Some(true));
    context.printer.print_painted(&view.paint(&context.layout()))?;
    Ok(CommandOutcome::Done)
}

/// Returns the command line that resumes a session; `None` if its agent cannot.
fn describe_resume(session: &Session) -> Option<String> {
    let parent_by = |relation| {
        session.parent_session_id.as_deref().filter(|_| session.relation == Some(relation))
    };
    let resumed = ResumedSession {
        session_id: &session.session_id,
        provider: session.provider,
        native_id: session.native_id.as_deref(),
        parent_of_subagent: parent_by(Relation::SubagentOf),
        later_version: parent_by(Relation::EarlierVersionOf),
        is_log_gone: session.source_gone,
    };
    let command = AgentCommand::resume(resumed).ok()?;
    Some(command.to_shell_line())
}

pub(in crate::cli) fn run(flags: ShowFlags, context: &CommandContext<'_>) -> CommandResult {
    if flags.args.0.session_id.is_empty() {
        return pick_session("show", None, context);
    }
    if context.printer.terminal.is_screen && !context.printer.is_json && flags.is_conversation() {
        return show_conversation(&flags.args.0, context);
    }
    let ShowFlags { args: ToolFlags(args), pages } = flags;
    let tools = context.create_priced_tools()?;
    let answer = pages.read(|cursor| {
        context.read_page(|call| {
            tools.get_session_details(&DetailArgs { cursor, ..args.clone() }, call)
        })
    })?;
    context.print_page(&answer, pages.shown_page())?;
    Ok(CommandOutcome::Done)
}
