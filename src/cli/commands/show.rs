//! `sessions show`: shows one session.

use schemas::event::Relation;
use schemas::tool::details::{DetailArgs, DetailLevel};
use schemas::tool::list::Session;

use super::resume::ResumeFlags;
use crate::cli::context::CommandContext;
use crate::cli::exit::{CommandFailure, CommandOutcome};
use crate::cli::paging::OnePageFlags;
use crate::cli::screens::pick_session;
use crate::output::{ConversationView, Show as _};
use crate::resume::{AgentCommand, ResumedSession};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ShowFlags {
    /// Session id; any unique prefix, 'current' or 'last' [default: choose in the picker]
    #[arg(value_name = "ID")]
    session_id: Option<String>,
    /// summary, turns, steps or full [default: summary]
    #[arg(long, value_name = "LEVEL")]
    detail_level: Option<DetailLevel>,
    /// Show the model's reasoning too; at steps and full
    #[arg(long)]
    include_reasoning: bool,
    /// Only these turns: '4', '3-5', '3-'
    #[arg(long)]
    turns: Option<String>,
    /// Only the last N steps; at turns, turns
    #[arg(long, value_name = "N")]
    last: Option<u32>,
    #[command(flatten)]
    pages: OnePageFlags,
    /// Maximum number of turns, steps or events per page
    #[arg(long, short = 'n', value_name = "N")]
    limit: Option<u32>,
}

impl ShowFlags {
    fn into_args(self, session_id: String) -> DetailArgs {
        let flags = self;
        DetailArgs {
            session_id,
            detail_level: flags.detail_level,
            include_reasoning: flags.include_reasoning.then_some(true),
            turns: flags.turns,
            last: flags.last,
            cursor: None,
            limit: flags.limit,
        }
    }

    /// True if nothing but the session is named, so that a terminal shows the conversation.
    fn is_conversation(&self) -> bool {
        self.detail_level.is_none()
            && self.turns.is_none()
            && self.last.is_none()
            && !self.pages.is_given()
            && self.limit.is_none()
    }
}

/// Shows a session as a conversation.
fn show_conversation(
    session_id: &str,
    flags: &ShowFlags,
    context: &CommandContext<'_>,
) -> Result<CommandOutcome, CommandFailure> {
    let tools = context.create_priced_tools()?;
    let transcript = tools.read_transcript(session_id, &context.call)?;
    let resume_line = describe_resume(&transcript.session);
    let view = ConversationView::new(transcript, resume_line, flags.include_reasoning);
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

pub(in crate::cli) fn run(
    mut flags: ShowFlags,
    context: &CommandContext<'_>,
) -> Result<CommandOutcome, CommandFailure> {
    let Some(session_id) = flags.session_id.take() else {
        return pick_session("show", ResumeFlags::default(), context);
    };
    if context.printer.terminal.is_screen && !context.printer.is_json && flags.is_conversation() {
        return show_conversation(&session_id, &flags, context);
    }
    let tools = context.create_priced_tools()?;
    let pages = flags.pages.clone();
    let args = flags.into_args(session_id);
    let answer = pages.read(|cursor| {
        context.read_page(|call| {
            tools.get_session_details(&DetailArgs { cursor, ..args.clone() }, call)
        })
    })?;
    context.print_page(&answer, pages.shown_page())?;
    Ok(CommandOutcome::Done)
}
