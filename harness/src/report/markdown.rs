//! A page as Markdown.

use super::page::{Block, Page, Table};

/// Renders the page; the chart is linked by its file name.
pub(super) fn render(page: &Page, chart: &str) -> String {
    let mut out = format!("# {}\n\n", page.title);
    for block in page
        .blocks
        .iter()
        .filter(|b| matches!(b, Block::Warning(_)))
    {
        push(&mut out, block, chart);
    }
    out.push_str(&page.question);
    out.push_str("\n\n");
    for block in page
        .blocks
        .iter()
        .filter(|b| !matches!(b, Block::Warning(_)))
    {
        push(&mut out, block, chart);
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

fn push(out: &mut String, block: &Block, chart: &str) {
    let text = match block {
        Block::Warning(text) => format!("> **Warning.** {}", escape(text)),
        Block::Verdict(text) => format!("**{}**", escape(text)),
        Block::Heading(text) => format!("## {text}"),
        Block::Text(text) => escape(text),
        Block::List(items) => items
            .iter()
            .map(|i| format!("* {}", escape(i)))
            .collect::<Vec<_>>()
            .join("\n"),
        Block::Table(table) => table_text(table),
        Block::Chart(caption) => format!("![{}]({chart})\n\n{}", escape(caption), escape(caption)),
    };
    out.push_str(&text);
    out.push_str("\n\n");
}

fn table_text(table: &Table) -> String {
    let line = |cells: &[String]| {
        format!(
            "| {} |",
            cells
                .iter()
                .map(|c| escape(c))
                .collect::<Vec<_>>()
                .join(" | ")
        )
    };
    let rule: Vec<&str> = (0..table.head.len())
        .map(|c| if c < table.left { "---" } else { "---:" })
        .collect();
    let mut lines = vec![line(&table.head), format!("| {} |", rule.join(" | "))];
    lines.extend(table.rows.iter().map(|row| line(row)));
    lines.join("\n")
}

/// Text that came from files must not become markup.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '|' | '*' | '_' | '`' | '<' | '[' | ']' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            '\n' | '\r' => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_cannot_break_out_of_a_table() {
        let mut table = Table::new(&["a", "b"], 1);
        table.rows.push(vec!["x|y".into(), "1\n2".into()]);
        assert_eq!(
            table_text(&table),
            "| a | b |\n| --- | ---: |\n| x\\|y | 1 2 |"
        );
    }
}
