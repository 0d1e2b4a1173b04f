//! The arguments of the program: the commands, and the options that all of them share.

use crate::command::Command;
use crate::exit;
use clap::{Parser, ValueEnum};

/// Messages between AI assistants and people: copied, pasted, kept and verified.
///
/// Begin with `crosstalk send chatgpt "Your question"` and `crosstalk paste`. Data goes to stdout, talk to stderr. `-` is stdin.
/// Crosstalk reads text the way chats and mail programs leave it; `canonical`, and `parse` and `lint` with --strict, repair
/// nothing.
#[derive(Debug, Parser)]
#[command(
    name = "crosstalk",
    version,
    max_term_width = 80,
    subcommand_required = false,
    after_help = exit::table()
)]
pub(crate) struct Cli {
    /// Use colors: auto, always or never; auto respects NO_COLOR
    #[arg(
        long,
        value_enum,
        global = true,
        default_value_t = Color::Auto,
        value_name = "WHEN",
        hide_possible_values = true,
        hide_default_value = true
    )]
    pub(crate) color: Color,
    /// Use this profile of the settings; CROSSTALK_PROFILE does the same
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_is_consistent() {
        crate::command().debug_assert();
    }
}
