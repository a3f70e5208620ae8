//! `strftime_now` without a time zone database: UTC.

use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

const DAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Seconds since 1970-01-01 UTC.
pub fn unix_seconds_now() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_secs() as i64)
}

/// Python's `strftime` in the C locale; a directive that is not known stays as it is.
pub fn strftime(format: &str, unix_seconds: i64) -> String {
    let days = unix_seconds.div_euclid(86_400);
    let second_of_day = unix_seconds.rem_euclid(86_400);
    let (hour, minute, second) = (
        second_of_day / 3600,
        second_of_day / 60 % 60,
        second_of_day % 60,
    );
    let hour_12 = (hour + 11) % 12 + 1;
    let (year, month, day) = civil_from_days(days);
    let weekday = DAYS[(days + 4).rem_euclid(7) as usize];
    let month_name = MONTHS[month as usize - 1];
    let day_of_year = days - days_from_civil(year, 1, 1) + 1;

    let mut out = String::new();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut directive = chars.next();
        let bare = directive == Some('-');
        if bare {
            directive = chars.next();
        }
        let width = |n: usize| if bare { 0 } else { n };
        let written = match directive {
            Some('Y') => write!(out, "{year}"),
            Some('y') => write!(out, "{:0w$}", year.rem_euclid(100), w = width(2)),
            Some('m') => write!(out, "{month:0w$}", w = width(2)),
            Some('d') => write!(out, "{day:0w$}", w = width(2)),
            Some('e') => write!(out, "{day:w$}", w = width(2)),
            Some('j') => write!(out, "{day_of_year:0w$}", w = width(3)),
            Some('H') => write!(out, "{hour:0w$}", w = width(2)),
            Some('I') => write!(out, "{hour_12:0w$}", w = width(2)),
            Some('M') => write!(out, "{minute:0w$}", w = width(2)),
            Some('S') => write!(out, "{second:0w$}", w = width(2)),
            Some('p') => write!(out, "{}", if hour < 12 { "AM" } else { "PM" }),
            Some('B') => write!(out, "{month_name}"),
            Some('b') => write!(out, "{}", &month_name[..3]),
            Some('A') => write!(out, "{weekday}"),
            Some('a') => write!(out, "{}", &weekday[..3]),
            Some('F') => write!(out, "{year}-{month:02}-{day:02}"),
            Some('T') => write!(out, "{hour:02}:{minute:02}:{second:02}"),
            Some('Z') => write!(out, "UTC"),
            Some('z') => write!(out, "+0000"),
            Some('%') => write!(out, "%"),
            Some(other) => write!(out, "%{}{other}", if bare { "-" } else { "" }),
            None => write!(out, "%{}", if bare { "-" } else { "" }),
        };
        written.expect("a string takes anything");
    }
    out
}

/// Year, month and day of a day number (Howard Hinnant, "chrono-Compatible Low-Level Date
/// Algorithms", `civil_from_days`).
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// Day number of a date (the same source, `days_from_civil`).
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_right() {
        // 2024-02-29 13:05:09 UTC, a Thursday.
        let time = 1_709_211_909;
        assert_eq!(strftime("%Y-%m-%d %H:%M:%S", time), "2024-02-29 13:05:09");
        assert_eq!(
            strftime("%d %b %y, %A, %-I %p, day %j", time),
            "29 Feb 24, Thursday, 1 PM, day 060"
        );
        assert_eq!(strftime("%B %e %q 100%% %", 0), "January  1 %q 100% %");
        assert_eq!(strftime("%F %T %a", -1), "1969-12-31 23:59:59 Wed");
    }

    #[test]
    fn days_and_dates_convert_both_ways() {
        for days in (-800_000..800_000).step_by(97) {
            let (year, month, day) = civil_from_days(days);
            assert_eq!(days_from_civil(year, month, day), days);
        }
    }
}
