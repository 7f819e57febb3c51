//! `sessions help`: lists the everyday commands, or all of them with the global flags.

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct HelpFlags {
    /// List all commands and the global flags
    #[arg(long = "all")]
    pub(in crate::cli) lists_all: bool,
}
