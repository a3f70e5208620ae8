//! The chart: sessions in order on the left, ratios on the right.

use plotters::coord::Shift;
use plotters::prelude::*;

use super::ReportError;
use super::format::{MISSING, unit_text};
use super::terminal::in_words;
use crate::archive::Facts;
use crate::derive::{Comparison, Figures, Metric, Unit, three_digits};
use crate::study::{PlannedSession, Role, at_level};

/// Blue, orange and two more that differ in lightness too (Okabe and Ito's colour-blind safe set).
const COLOURS: [RGBColor; 4] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
];
const INK: RGBColor = RGBColor(40, 44, 52);
const SOFT: RGBColor = RGBColor(140, 149, 159);
const GRID: RGBColor = RGBColor(232, 235, 239);

const SIZE: (u32, u32) = (980, 420);
const LEFT_WIDTH: i32 = 560;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Draws the chart as SVG text. Text stays text: no font is embedded or needed to draw it.
pub fn sessions_svg(facts: &Facts, figures: &Figures) -> Result<String, ReportError> {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        draw(&root, facts, figures).map_err(|e| ReportError::Chart(e.to_string()))?;
        root.present()
            .map_err(|e| ReportError::Chart(e.to_string()))?;
    }
    Ok(svg)
}

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn draw(root: &Area<'_>, facts: &Facts, figures: &Figures) -> Outcome {
    root.fill(&WHITE)?;
    let (left, right) = root.split_horizontally(LEFT_WIDTH);
    sessions(&left, facts, figures)?;
    ratios(&right, figures)
}

fn font(size: i32, colour: RGBColor) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&colour)
}

fn colour(figures: &Figures, arm: &str) -> (usize, RGBColor) {
    let at = figures.arms().iter().position(|a| a == arm).unwrap_or(0);
    (at, COLOURS[at % COLOURS.len()])
}

/// The rate that is drawn of each session.
pub(super) struct Drawn {
    metric: Metric,
    level: Option<String>,
}

/// What all requests in flight generate together, at the primary level, or else the decode rate.
pub(super) fn drawn_rate(figures: &Figures) -> Drawn {
    let own = [Metric::CohortRate, Metric::Goodput, Metric::Throughput];
    let found = own.into_iter().find(|m| figures.metrics().contains(m));
    Drawn {
        metric: found.unwrap_or(Metric::DecodeRate),
        level: figures.protocol().primary_level(),
    }
}

impl Drawn {
    /// For captions.
    pub(super) fn words(&self) -> String {
        in_words(self.metric, self.level.as_deref())
    }

    /// What there are so many of a second.
    fn things(&self) -> &'static str {
        match self.metric.unit() {
            Unit::RequestsPerSecond => "requests",
            _ => "tokens",
        }
    }

    /// Id of the figure of a session or an arm.
    fn figure(&self, of: &str) -> String {
        let scope = at_level(of, self.level.as_deref());
        format!("{scope}/{}", self.metric.key())
    }
}

/// Each session's rate, pairs joined.
fn sessions(area: &Area<'_>, facts: &Facts, figures: &Figures) -> Outcome {
    let drawn = drawn_rate(figures);
    let points: Vec<(f64, &PlannedSession, f64)> = facts
        .sessions
        .iter()
        .filter_map(|s| {
            let id = drawn.figure(&s.scope());
            let value = figures.value(&id)?;
            Some((f64::from(s.planned.index), &s.planned, value))
        })
        .collect();
    let count = facts.plan.sessions.len();
    let top = points.iter().map(|p| p.2).fold(0.0, f64::max).max(1e-9) * 1.25;
    let mut chart = ChartBuilder::on(area)
        .margin_left(12)
        .margin_right(18)
        .margin_top(46)
        .margin_bottom(8)
        .x_label_area_size(52)
        .y_label_area_size(58)
        .build_cartesian_2d(-0.5..count as f64 - 0.5, 0.0..top)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .axis_style(SOFT)
        .x_labels(0)
        .y_labels(6)
        .y_label_formatter(&|v| three_digits(*v))
        .y_label_style(font(13, INK))
        .y_desc(format!("{}, {} per second", drawn.words(), drawn.things()))
        .axis_desc_style(font(13, INK))
        .draw()?;
    for (x, planned, value) in &points {
        let partner = points
            .iter()
            .find(|p| p.1.pair.is_some() && p.1.pair == planned.pair && p.0 > *x);
        if let Some((x2, _, value2)) = partner {
            chart.draw_series(std::iter::once(PathElement::new(
                vec![(*x, *value), (*x2, *value2)],
                SOFT.stroke_width(2),
            )))?;
        }
    }
    for (x, planned, value) in &points {
        let (at, colour) = colour(figures, &planned.arm);
        let style = if planned.role == Role::Scored {
            colour.filled()
        } else {
            colour.stroke_width(2)
        };
        let place = EmptyElement::at((*x, *value));
        if at % 2 == 0 {
            chart.draw_series(std::iter::once(place + Circle::new((0, 0), 7, style)))?;
        } else {
            chart.draw_series(std::iter::once(
                place + Rectangle::new([(-6, -6), (6, 6)], style),
            ))?;
        }
    }
    session_names(area, &chart, facts)?;
    legend(area, figures)
}

/// Below the axis: position in the order, and what a burn-in is.
fn session_names<C>(
    area: &Area<'_>,
    chart: &ChartContext<'_, SVGBackend<'_>, C>,
    facts: &Facts,
) -> Outcome
where
    C: plotters::coord::CoordTranslate<From = (f64, f64)>,
{
    use plotters::style::text_anchor::{HPos, Pos, VPos};
    let (origin_x, origin_y) = area.get_base_pixel();
    let centre = Pos::new(HPos::Center, VPos::Top);
    for planned in &facts.plan.sessions {
        let (x, y) = chart
            .as_coord_spec()
            .translate(&(f64::from(planned.index), 0.0));
        let (x, y) = (x - origin_x, y - origin_y);
        // Colour and shape name the arm.
        let name = planned.index.to_string();
        area.draw(&Text::new(name, (x, y + 8), font(13, INK).pos(centre)))?;
        if planned.role == Role::BurnIn {
            area.draw(&Text::new(
                "burn-in",
                (x, y + 24),
                font(11, SOFT).pos(centre),
            ))?;
        }
    }
    let (width, height) = area.dim_in_pixel();
    let note = Text::new(
        "sessions in the order they ran · C: calculated from measured times",
        (width as i32 / 2 + 20, height as i32 - 18),
        font(12, SOFT).pos(centre),
    );
    area.draw(&note)?;
    Ok(())
}

fn legend(area: &Area<'_>, figures: &Figures) -> Outcome {
    let mut x = 72;
    for arm in figures.arms() {
        let (at, colour) = colour(figures, arm);
        if at % 2 == 0 {
            area.draw(&Circle::new((x, 20), 6, colour.filled()))?;
        } else {
            area.draw(&Rectangle::new([(x - 5, 15), (x + 5, 25)], colour.filled()))?;
        }
        let drawn = drawn_rate(figures);
        let rate = figures.value(&drawn.figure(&format!("arm/{arm}")));
        let text = format!(
            "{arm}: {} {} C",
            rate.map_or_else(|| MISSING.into(), three_digits),
            unit_text(drawn.metric.unit())
        );
        area.draw(&Text::new(text.clone(), (x + 12, 13), font(14, INK)))?;
        x += 12 + text.chars().count() as i32 * 8 + 26;
    }
    Ok(())
}

/// One row a comparison: pairs, estimate, interval, on a logarithmic axis.
fn ratios(area: &Area<'_>, figures: &Figures) -> Outcome {
    // Of several levels, the one that the study is about.
    let level = figures.protocol().primary_level();
    let rows: Vec<(&Comparison, Vec<f64>, f64)> = figures
        .comparisons()
        .iter()
        .filter(|c| c.level == level)
        .filter_map(|c| {
            let estimate = figures.value(&format!("{}/ratio", c.prefix))?;
            Some((
                c,
                c.pair_ratios(figures)
                    .filter_map(crate::derive::Published::value)
                    .collect(),
                estimate,
            ))
        })
        .collect();
    let Some((first, _, _)) = rows.first() else {
        area.draw(&Text::new(
            "no arms were compared",
            (60, 200),
            font(14, SOFT),
        ))?;
        return Ok(());
    };
    let end = |c: &Comparison, which: &str| figures.value(&format!("{}/ratio{which}", c.prefix));
    let (mut low, mut high) = (0.8_f64, 1.25_f64);
    for (c, pairs, estimate) in &rows {
        let ends = [end(c, "_low"), end(c, "_high")];
        for value in pairs
            .iter()
            .copied()
            .chain([*estimate])
            .chain(ends.into_iter().flatten())
        {
            (low, high) = (low.min(value), high.max(value));
        }
    }
    let (low, high) = (low / 1.12, high * 1.12);
    let title = if rows.iter().all(|(c, _, _)| c.other == first.other) {
        format!("{} / {}, log axis", first.other, first.base)
    } else {
        "ratio, log axis".into()
    };
    area.draw(&Text::new(title, (20, 12), font(14, INK)))?;
    let count = rows.len() as f64;
    let mut chart = ChartBuilder::on(area)
        .margin_left(20)
        .margin_right(24)
        .margin_top(46)
        .margin_bottom(8)
        .x_label_area_size(52)
        .build_cartesian_2d((low..high).log_scale(), 0.0..count)?;
    chart
        .configure_mesh()
        .disable_mesh()
        .disable_axes()
        .x_labels(0)
        .y_labels(0)
        .draw()?;
    for tick in ticks(low, high) {
        let strong = (tick - 1.0).abs() < 1e-12;
        let style = if strong {
            INK.stroke_width(1)
        } else {
            GRID.stroke_width(1)
        };
        // Not through a row's words, which stand in its upper part.
        for row in 0..rows.len() {
            let y = row as f64;
            chart.draw_series(std::iter::once(PathElement::new(
                vec![(tick, y), (tick, y + 0.5)],
                style,
            )))?;
        }
        let label =
            EmptyElement::at((tick, 0.0)) + Text::new(format!("{tick}×"), (-10, 8), font(12, INK));
        chart.draw_series(std::iter::once(label))?;
    }
    chart.draw_series(std::iter::once(PathElement::new(
        vec![(low, 0.0), (high, 0.0)],
        SOFT.stroke_width(1),
    )))?;
    for (row, (c, pairs, estimate)) in rows.iter().enumerate() {
        let y = count - row as f64 - 0.71;
        let shade = COLOURS[1];
        for pair in pairs {
            let mark = EmptyElement::at((*pair, y)) + Circle::new((0, 0), 5, SOFT.stroke_width(2));
            chart.draw_series(std::iter::once(mark))?;
        }
        let mut words = format!("{}: {} C", short_title(c), three_digits(*estimate));
        match (end(c, "_low"), end(c, "_high")) {
            (Some(l), Some(h)) => {
                chart.draw_series(std::iter::once(PathElement::new(
                    vec![(l, y), (h, y)],
                    shade.stroke_width(3),
                )))?;
                words = format!("{words} ({} to {})", three_digits(l), three_digits(h));
            }
            _ => words.push_str(", no interval"),
        }
        let diamond = EmptyElement::at((*estimate, y))
            + Polygon::new(vec![(-7, 0), (0, -7), (7, 0), (0, 7)], shade.filled());
        chart.draw_series(std::iter::once(diamond))?;
        let label = EmptyElement::at((low, y)) + Text::new(words, (2, -34), font(13, INK));
        chart.draw_series(std::iter::once(label))?;
    }
    let (width, height) = area.dim_in_pixel();
    let note = format!(
        "circles: pairs · diamond: estimate · bar: {}",
        figures.interval_title()
    );
    let place = (
        width as i32 / 2 - note.chars().count() as i32 * 3,
        height as i32 - 18,
    );
    area.draw(&Text::new(note, place, font(12, SOFT)))?;
    Ok(())
}

fn short_title(c: &Comparison) -> String {
    let better = if c.metric.higher_is_better() {
        "higher is better"
    } else {
        "lower is better"
    };
    let name = match c.metric {
        Metric::DecodeRate => "decode rate",
        Metric::PromptRate => "prompt rate",
        Metric::Ttft => "time to first token",
        Metric::ClientWall => "wall time",
        Metric::CohortRate => "cohort rate",
        Metric::CohortWall => "cohort wall time",
        Metric::Throughput => "throughput",
        Metric::Tpot => "time per output token",
        Metric::Goodput => "goodput",
    };
    format!("{name} ({better})")
}

/// Ratios worth a line between the ends.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    let all = [
        0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 0.8, 1.0, 1.25, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0,
    ];
    let wide = high / low > 8.0;
    all.into_iter()
        .filter(|t| *t >= low && *t <= high)
        .filter(|t| !(wide && (*t == 0.8 || *t == 1.25)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_always_marked() {
        assert!(ticks(0.7, 1.4).contains(&1.0));
        assert_eq!(ticks(0.05, 4.0), [0.05, 0.1, 0.2, 0.5, 1.0, 2.0]);
    }
}
