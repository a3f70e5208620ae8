//! Output that nobody reads any more.

use std::panic;
use std::process;

/// What a shell shows for a program that the closed pipe ended (128 + SIGPIPE).
const ENDED_BY_PIPE: i32 = 141;

/// From now on the program ends quietly where whoever reads its standard output has gone, as other
/// programs do, instead of with a panic and a panic's exit code.
pub(super) fn end_with_the_reader() {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let gone = info.payload_as_str().is_some_and(|text| {
            text.starts_with("failed printing to stdout") && text.contains("Broken pipe")
        });
        if gone {
            process::exit(ENDED_BY_PIPE);
        }
        usual(info);
    }));
}
