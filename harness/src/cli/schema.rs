//! `palindrome schema`.

use super::Exit;
use super::args::SchemaCommand;
use crate::study::study_schema;

/// Prints the schema of a kind of file.
pub fn schema(of: SchemaCommand) -> Exit {
    match of {
        SchemaCommand::Study => print!("{}", study_schema()),
    }
    Exit::Done
}
