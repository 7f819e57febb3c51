//! `sessions usage`: shows tokens and cost by day, week or month.

use jiff::civil::Date;
use schemas::envelope::EncodedAnswer;
use schemas::limits;
use schemas::tool::OneOrMany;
use schemas::tool::stats::{GroupKey, StatsArgs, StatsData};

use super::stats::set_usual_span;
use crate::cli::context::CommandContext;
use crate::cli::exit::{CommandOutcome, CommandResult};
use crate::cli::tool_flags::ToolFlags;
use crate::output::{Layout, Show as _, UsageTable};
use tools::Extent;
use tools::quota::read_quotas;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct UsageFlags {
    /// daily, weekly or monthly; or the days of a span: today, yesterday, 7d, 2026-11-20, 2026-11
    /// [default: daily]
    #[arg(value_parser = parse_period)]
    period: Option<Period>,
    /// Same as PERIOD: daily, weekly or monthly
    #[arg(long = "by", value_name = "PERIOD", value_parser = parse_period, conflicts_with = "period")]
    by: Option<Period>,
    /// Show the quotas that agents record: percentage used and reset time of each window
    #[arg(long)]
    limits: bool,
    /// Show everything; by default a terminal shows the last 30 days, 12 weeks or 12 months
    #[arg(long)]
    all: bool,
    /// Show only the newest N periods
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(limits::STATS_LIMIT_MAX)))]
    limit: Option<u32>,
    #[command(flatten)]
    args: ToolFlags<StatsArgs>,
}

#[derive(Debug, Clone)]
enum Period {
    Daily,
    Weekly,
    Monthly,
    Today,
    Yesterday,
    Date(Date),
    /// The month that begins on this day.
    Month(Date),
    /// The time until now, as `--since` takes it.
    Since(String),
}

/// The periods that completion offers. A date is one, too, and `day` is `daily`.
pub(in crate::cli) const PERIODS: &[&str] = &["daily", "monthly", "today", "weekly", "yesterday"];

/// Parses a period.
fn parse_period(text: &str) -> Result<Period, String> {
    match text {
        "day" | "daily" => Ok(Period::Daily),
        "week" | "weekly" => Ok(Period::Weekly),
        "month" | "monthly" => Ok(Period::Monthly),
        "today" => Ok(Period::Today),
        "yesterday" => Ok(Period::Yesterday),
        _ => parse_span(text).ok_or_else(|| {
            let key = if text.parse::<GroupKey>().is_ok() { text } else { "KEY" };
            format!("name daily, weekly, monthly, today, yesterday, 7d, a date such as 2026-11-20 or a month such as 2026-11. `sessions stats --by {key}` counts by other keys")
        }),
    }
}

/// Parses a date, a month, or a number of days or weeks.
fn parse_span(text: &str) -> Option<Period> {
    if let Ok(date) = text.parse() {
        return Some(Period::Date(date));
    }
    if let Ok(first) = format!("{text}-01").parse() {
        return Some(Period::Month(first));
    }
    let count = text.strip_suffix(['d', 'w'])?;
    count.parse::<u16>().ok().filter(|count| *count > 0)?;
    Some(Period::Since(text.to_owned()))
}

impl Period {
    /// Returns the key of the groups.
    const fn key(&self) -> GroupKey {
        match self {
            Self::Daily
            | Self::Today
            | Self::Yesterday
            | Self::Date(_)
            | Self::Month(_)
            | Self::Since(_) => GroupKey::Day,
            Self::Weekly => GroupKey::Week,
            Self::Monthly => GroupKey::Month,
        }
    }

    /// Returns the times at which a span begins and ends.
    fn bounds(&self) -> (Option<String>, Option<String>) {
        match self {
            Self::Today => (Some("today".to_owned()), None),
            Self::Yesterday => (Some("yesterday".to_owned()), Some("today".to_owned())),
            Self::Date(date) => {
                (Some(date.to_string()), date.tomorrow().ok().map(|next| next.to_string()))
            }
            Self::Month(first) => {
                let last = first.last_of_month().tomorrow();
                (Some(first.to_string()), last.ok().map(|next| next.to_string()))
            }
            Self::Since(since) => (Some(since.clone()), None),
            Self::Daily | Self::Weekly | Self::Monthly => (None, None),
        }
    }

    /// Returns the span that a screen shows if the user names none, and its name.
    const fn usual_span(&self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Daily => Some(("30d", "the last 30 days")),
            Self::Weekly => Some(("12w", "the last 12 weeks")),
            Self::Monthly => Some(("52w", "the last 12 months")),
            Self::Today | Self::Yesterday | Self::Date(_) | Self::Month(_) | Self::Since(_) => None,
        }
    }
}

pub(in crate::cli) fn run(flags: UsageFlags, context: &CommandContext<'_>) -> CommandResult {
    let tools = context.create_query_tools()?;
    let call = &context.call;
    let printer = context.printer;
    if flags.limits {
        let quotas = read_quotas(&tools, call)?;
        if quotas.windows.is_empty() && !printer.is_json {
            printer.print_note("No log in the store records a quota. Codex records them.")?;
        }
        printer.print_value(&quotas, &context.layout())?;
        return Ok(CommandOutcome::from_found(!quotas.windows.is_empty()));
    }
    let period = flags.period.or(flags.by).unwrap_or(Period::Daily);
    let mut args = flags.args.0;
    args.group_by = OneOrMany::One(period.key());
    args.limit = flags.limit.or(Some(limits::STATS_LIMIT_MAX));
    let (since, until) = period.bounds();
    let has_span = since.is_some();
    args.since = args.since.or(since);
    args.until = args.until.or(until);
    let is_screen = printer.terminal.is_screen && !printer.is_json;
    let mut shown_span = None;
    if is_screen
        && !flags.all
        && let Some((span, name)) = period.usual_span()
        && set_usual_span(&mut args, span)
    {
        shown_span = Some(name);
    }
    let extent = if printer.is_json {
        Extent::Lines
    } else if flags.limit.is_some() {
        Extent::Table
    } else {
        Extent::All
    };
    let answer = tools.count_sessions(&args, extent, call)?;
    if printer.is_json {
        printer.print_json(&answer)?;
        return Ok(CommandOutcome::from_found(!answer.data.groups.is_empty()));
    }

    let has_tokens = answer.data.groups.iter().any(|group| group.tokens.is_some());
    if let Some(span) = shown_span.filter(|_| has_tokens) {
        printer.print_note(&format!("{span}; --all shows everything"))?;
    }
    if has_tokens {
        printer.print_painted(&UsageTable(&answer.data).paint(&context.layout()))?;
    } else if flags.limit.is_some() && !answer.data.groups.is_empty() {
        printer.print_note("no tokens in these periods; without -n all are shown")?;
    } else {
        let span = shown_span.or(has_span.then_some("this period"));
        printer.print_note(&describe_no_tokens(&answer, span, &context.layout()))?;
    }
    printer.print_warnings(&answer.warnings)?;
    Ok(CommandOutcome::from_found(has_tokens))
}

/// Says why there are no tokens. `span` names the days that were counted; `None` if flags chose them.
fn describe_no_tokens(
    answer: &EncodedAnswer<StatsData>,
    span: Option<&str>,
    layout: &Layout,
) -> String {
    match (span, answer.metadata.newest_event.as_deref(), &answer.hint) {
        (Some(span), Some(newest), _) => {
            let newest = layout.time(Some(newest));
            format!(
                "no tokens in {span}; the newest event is from {newest}; `sessions usage --all` shows everything"
            )
        }
        (_, _, Some(hint)) => layout.localize_times(hint),
        (_, _, None) => "The logs do not record tokens.".to_owned(),
    }
}
