//! A page as one self-contained HTML file: no script, no external file.

use super::page::{Block, Page, Table};

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1b1f24;--soft:#59636e;--line:#d1d9e0;--paper:#fff;--card:#f6f8fa;--warn:#fff4e0;--warnline:#d97706}\
@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9198a1;--line:#3d444d;--paper:#0d1117;--card:#151b23;--warn:#2b2111;--warnline:#d97706}}\
body{margin:0 auto;max-width:62rem;padding:2rem 1.25rem 4rem;font:16px/1.55 system-ui,sans-serif;color:var(--ink);background:var(--paper)}\
h1{font-size:1.75rem;line-height:1.2;margin:0 0 .75rem}h2{font-size:1.15rem;margin:2.25rem 0 .6rem;padding-top:.6rem;border-top:1px solid var(--line)}\
p{margin:.5rem 0}.question{color:var(--soft)}\
.warning{background:var(--warn);border-left:4px solid var(--warnline);padding:.5rem .9rem;margin:.4rem 0}\
.verdict{font-size:1.15rem;font-weight:600;background:var(--card);border:1px solid var(--line);border-radius:6px;padding:.9rem 1.1rem;margin:1rem 0}\
.wide{overflow-x:auto}table{border-collapse:collapse;font-size:.85rem;margin:.5rem 0;font-variant-numeric:tabular-nums}\
th,td{padding:.28rem .65rem;border-bottom:1px solid var(--line);vertical-align:top;text-align:left}\
th{color:var(--soft);font-weight:600}th.n,td.n{text-align:right;white-space:nowrap}td.t{overflow-wrap:anywhere;min-width:6.5rem}\
figure{margin:1rem 0;overflow-x:auto}figure svg{box-sizing:border-box;width:100%;min-width:44rem;height:auto;background:#fff;border:1px solid var(--line);border-radius:6px}\
figcaption{color:var(--soft);font-size:.85rem;margin-top:.4rem}li{margin:.2rem 0}\
@media print{body{max-width:none;padding:0;font-size:11px}h2{break-after:avoid}tr,figure{break-inside:avoid}}";

/// Renders the page with the chart's SVG inlined.
pub(super) fn render(page: &Page, svg: &str) -> String {
    let title = escape(&page.title);
    let mut body = format!("<h1>{title}</h1>\n");
    for block in page
        .blocks
        .iter()
        .filter(|b| matches!(b, Block::Warning(_)))
    {
        push(&mut body, block, svg);
    }
    body.push_str("<p class=\"question\">");
    body.push_str(&escape(&page.question));
    body.push_str("</p>\n");
    for block in page
        .blocks
        .iter()
        .filter(|b| !matches!(b, Block::Warning(_)))
    {
        push(&mut body, block, svg);
    }
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n<style>{STYLE}</style>\n\
         </head>\n<body>\n{body}</body>\n</html>\n"
    )
}

fn push(out: &mut String, block: &Block, svg: &str) {
    let text = match block {
        Block::Warning(text) => format!(
            "<p class=\"warning\"><strong>Warning.</strong> {}</p>",
            escape(text)
        ),
        Block::Verdict(text) => format!("<p class=\"verdict\">{}</p>", escape(text)),
        Block::Heading(text) => format!("<h2>{}</h2>", escape(text)),
        Block::Text(text) => format!("<p>{}</p>", escape(text)),
        Block::List(items) => {
            let items: Vec<String> = items
                .iter()
                .map(|i| format!("<li>{}</li>", escape(i)))
                .collect();
            let items = items.concat();
            format!("<ul>{items}</ul>")
        }
        Block::Table(table) => table_text(table),
        Block::Chart(caption) => {
            // An XML prologue has no place inside HTML.
            let drawing = svg.find("<svg").map_or(svg, |at| &svg[at..]);
            format!(
                "<figure>{drawing}<figcaption>{}</figcaption></figure>",
                escape(caption)
            )
        }
    };
    out.push_str(&text);
    out.push('\n');
}

fn table_text(table: &Table) -> String {
    let row = |cells: &[String], tag: &str| {
        let cells: Vec<String> = cells
            .iter()
            .enumerate()
            .map(|(c, text)| {
                let class = if c < table.left { "t" } else { "n" };
                format!("<{tag} class=\"{class}\">{}</{tag}>", escape(text))
            })
            .collect();
        format!("<tr>{}</tr>", cells.concat())
    };
    let rows: String = table.rows.iter().map(|r| row(r, "td")).collect();
    format!(
        "<div class=\"wide\"><table><thead>{}</thead><tbody>{rows}</tbody></table></div>",
        row(&table.head, "th")
    )
}

/// Text that came from files must not become markup.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_a_server_stays_text() {
        let block = Block::Text("<script>alert(\"x\")</script> & more".into());
        let mut out = String::new();
        push(&mut out, &block, "");
        assert_eq!(
            out,
            "<p>&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt; &amp; more</p>\n"
        );
    }
}
