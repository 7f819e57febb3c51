//! Makes the flags of a command from the arguments of its tool. `schemas` declares their names, types,
//! bounds, defaults and values; this file adds what only a command line has: short forms, synonyms, and
//! descriptions where those for models are too short.

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Command, FromArgMatches, value_parser};
use schemars::JsonSchema;
use schemas::tool::schema::input_schema;
use schemas::tool::{TOOLS, flag_name};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// The flags that have a short form, by argument.
const SHORT_FORMS: &[(&str, char)] = &[("limit", 'n'), ("project", 'p')];

/// Other words for values, by value. Tables call a provider an agent, and errors failures.
const SYNONYMS: &[(&str, &str)] = &[("provider", "agent"), ("errors", "failures")];

/// Arguments that commands do not take from their tool, by command: pages and the time zone have flags
/// of their own, and some commands choose the rest themselves.
const LEFT_OUT: &[(Option<&str>, &str)] = &[
    (None, "cursor"),
    (None, "timezone"),
    (Some("search"), "query"),
    (Some("usage"), "group_by"),
    (Some("usage"), "limit"),
    (Some("usage"), "sort"),
];

/// Descriptions by argument, for one command or for all. Other arguments have the description of the
/// tool.
const DESCRIPTIONS: &[(&str, Option<&str>, &str)] = &[
    ("provider", None, "Only this agent's sessions"),
    ("project", None, "Only sessions whose working directory contains this text"),
    ("machine", None, "Only sessions of machines whose name contains this text"),
    ("user", None, "Only sessions of users whose name contains this text"),
    (
        "since",
        None,
        "Only what happened since: '24h', '7d', 'yesterday', 'last week', a date or time",
    ),
    ("until", None, "Only what happened before this time"),
    ("label", None, "Only sessions with this label"),
    ("detail_level", None, "How much to show"),
    ("limit", Some("show"), "Turns, steps or events per page"),
    ("sort", Some("search"), "Order; by default newest, or relevance if nothing matches exactly"),
    ("session_ids", None, "Only this session; any unique prefix (can be repeated)"),
    ("fields", None, "Fields to show besides the ids"),
    (
        "event_ids",
        None,
        "Event ids: <session_id>:<event_index>, any unique session prefix; a range is <session_id>:60-80",
    ),
    (
        "session_id",
        Some("show"),
        "Session id; any unique prefix, 'current' or 'last' [default: choose in the picker]",
    ),
    (
        "session_id",
        Some("analyze"),
        "Session id; any unique prefix, 'current', 'last' or 'last_failed' [default: recurring errors of all sessions]",
    ),
    ("group_by", None, "One key, or two separated by a comma [default: a summary]"),
];

/// The arguments of a tool, as flags of its command.
#[derive(Debug, Clone)]
pub(super) struct ToolFlags<T>(pub(super) T);

impl<T: JsonSchema + DeserializeOwned> clap::Args for ToolFlags<T> {
    fn augment_args(mut command: Command) -> Command {
        let name = command.get_name().to_owned();
        let position =
            TOOLS.iter().find(|tool| tool.command == name).and_then(|tool| tool.position);
        let schema = input_schema::<T>();
        for (argument, property) in schema["properties"].as_object().into_iter().flatten() {
            let is_left_out = LEFT_OUT.iter().any(|(of, left_out)| {
                left_out == argument && of.is_none_or(|command| command == name)
            });
            if is_left_out {
                continue;
            }
            let arg = create_arg(argument, property).help(describe(&name, argument, property));
            command = command.arg(if position == Some(argument) {
                let is_required = schema["required"]
                    .as_array()
                    .is_some_and(|required| required.contains(&Value::from(argument.as_str())));
                // Without a session, the user chooses one in the picker.
                arg.required(is_required && name != "show")
            } else {
                add_flag(arg, argument)
            });
        }
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<T: JsonSchema + DeserializeOwned> FromArgMatches for ToolFlags<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let schema = input_schema::<T>();
        let mut values = Map::new();
        for (argument, property) in schema["properties"].as_object().into_iter().flatten() {
            if let Some(value) = read_value(matches, argument, property) {
                values.insert(argument.clone(), value);
            }
        }
        // What the tool requires and the command does not is empty.
        for required in schema["required"].as_array().into_iter().flatten() {
            let Some(argument) = required.as_str() else { continue };
            let is_list = schema["properties"][argument]["type"] == "array";
            let empty = || if is_list { Vec::<Value>::new().into() } else { String::new().into() };
            values.entry(argument).or_insert_with(empty);
        }
        let args = serde_json::from_value(Value::Object(values));
        args.map(Self).map_err(|error| clap::Error::raw(ErrorKind::ValueValidation, error))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Creates the argument of a command that is given without a flag.
fn create_arg(argument: &str, property: &Value) -> Arg {
    let is_list = property["type"] == "array";
    let arg = Arg::new(argument.to_owned()).value_name(value_name(argument, property));
    let arg = match property["type"].as_str() {
        Some("boolean") => return arg.action(ArgAction::SetTrue),
        // A number below 0 is no flag, but no valid value either.
        Some("integer") => {
            return arg.value_parser(value_parser!(u32)).allow_negative_numbers(true);
        }
        // The words of a query need no quotes.
        _ if is_list || argument == "query" => arg.action(ArgAction::Append),
        _ => arg,
    };
    let values = valid_values(property);
    if values.is_empty() {
        return arg;
    }
    let values = values.into_iter().map(|value| {
        let shown = shown_value(value);
        let synonym = SYNONYMS.iter().find(|(known, _)| *known == value);
        let words = synonym.map(|(known, synonym)| [*known, *synonym]).into_iter().flatten();
        PossibleValue::new(shown.to_owned()).aliases(words.filter(|word| *word != shown))
    });
    let arg = arg.value_parser(PossibleValuesParser::new(values)).hide_possible_values(true);
    if is_list { arg.value_delimiter(',') } else { arg }
}

/// Gives an argument its flag.
fn add_flag(arg: Arg, argument: &str) -> Arg {
    let short = SHORT_FORMS.iter().find(|(known, _)| *known == argument).map(|(_, short)| *short);
    let arg = arg.long(flag_name(argument)).short(short);
    if argument == "provider" { arg.visible_alias("provider") } else { arg }
}

/// Returns the name of an argument's value in the help: the last word of its name.
fn value_name(argument: &str, property: &Value) -> String {
    let word = argument.rsplit('_').next().unwrap_or(argument);
    let word = match property["type"].as_str() {
        Some("integer") => "n",
        Some("array") if word == "by" => "key",
        Some("array") => word.strip_suffix('s').unwrap_or(word),
        _ if argument == "query" => "words",
        _ if argument == "provider" => "agent",
        _ => word,
    };
    word.to_uppercase()
}

/// Describes an argument: what it is, its values, its default and its greatest value.
fn describe(command: &str, argument: &str, property: &Value) -> String {
    let own = DESCRIPTIONS
        .iter()
        .find(|(known, of, _)| *known == argument && of.is_none_or(|name| name == command));
    let description = property["description"].as_str().unwrap_or_default();
    let mut text = own.map_or(description, |(_, _, own)| *own).to_owned();
    let values = valid_values(property);
    // The names of the agents would fill the screen.
    if !values.is_empty() && argument != "provider" {
        let values: Vec<&str> = values.into_iter().map(shown_value).collect();
        text.push_str(&format!(" ({})", values.join(", ")));
    }
    let mut limits = Vec::new();
    match &property["default"] {
        Value::String(value) => limits.push(format!("default: {value}")),
        Value::Number(value) => limits.push(format!("default: {value}")),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {}
    }
    if let Some(most) = property.get("maximum") {
        limits.push(format!("at most {most}"));
    }
    if !limits.is_empty() {
        text.push_str(&format!(" [{}]", limits.join(", ")));
    }
    text
}

/// Returns a value as the help and messages name it. Screens call a provider an agent.
fn shown_value(value: &str) -> &str {
    if value == "provider" { "agent" } else { value }
}

/// Returns the values of an argument, or of the items of a list, that has a fixed number of them.
fn valid_values(property: &Value) -> Vec<&str> {
    let values = property["enum"].as_array().or(property["items"]["enum"].as_array());
    values.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Returns the value of an argument. `None` if it was not given or the command does not have it.
fn read_value(matches: &ArgMatches, argument: &str, property: &Value) -> Option<Value> {
    match property["type"].as_str()? {
        "boolean" => matches.try_get_one::<bool>(argument).ok()??.then_some(Value::Bool(true)),
        "integer" => matches.try_get_one::<u32>(argument).ok()?.copied().map(Value::from),
        kind => {
            let words = matches.try_get_many::<String>(argument).ok()??;
            let values = valid_values(property);
            let words: Vec<&str> = words.map(|word| meant_value(word, &values)).collect();
            Some(if kind == "array" { words.into() } else { words.join(" ").into() })
        }
    }
}

/// Returns the value that a word is a synonym of. Other words stay.
fn meant_value<'w>(word: &'w str, values: &[&str]) -> &'w str {
    let is_synonym = |(value, synonym): &&(&str, &str)| *synonym == word && values.contains(value);
    let known = SYNONYMS.iter().find(is_synonym).filter(|_| !values.contains(&word));
    known.map_or(word, |(value, _)| value)
}
