//! Cases of `check cron`.

use jiff::Timestamp;
use jiff::civil::DateTime;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{BadCase, finished, line, read};
use crate::guard::cron::{InvalidSchedule, Schedule};
use crate::time::Time;

/// Times a case may ask for.
const COUNT: usize = 1000;

#[derive(Debug, Deserialize)]
struct Case {
    expr: String,
    tz: Option<String>,
    after: String,
    count: Option<usize>,
    expect: Option<Value>,
}

/// Finds the next times of a schedule, or says that it is `invalid` or `never` comes, and compares that with what the case
/// expects.
///
/// # Errors
/// Fails when the case cannot be read.
pub fn check(case: &Value) -> Result<Value, BadCase> {
    let parsed: Case = read(case)?;
    let zone = parsed.tz.as_deref().unwrap_or("UTC");
    let expected = parsed.expect.as_ref().and_then(Value::as_array);
    let count = parsed.count.or(expected.map(Vec::len)).unwrap_or(1).min(COUNT);
    let next = match Schedule::parse(&parsed.expr, zone) {
        Err(InvalidSchedule::Never) => json!("never"),
        Err(InvalidSchedule::Shape | InvalidSchedule::Field { .. } | InvalidSchedule::Zone(_)) => json!("invalid"),
        Ok(schedule) => {
            let first = schedule.next(moment(&parsed.after, &schedule)?);
            let times = std::iter::successors(first, |time| schedule.next(*time)).take(count);
            let written = |(index, time): (usize, Time)| {
                // Two spellings of one moment are the same answer, so the case's own is given back.
                let wanted = expected.and_then(|times| times.get(index)).and_then(Value::as_str);
                let same = wanted.filter(|text| moment(text, &schedule) == Ok(time));
                same.map_or_else(|| spelt(time), str::to_owned)
            };
            json!(times.enumerate().map(written).collect::<Vec<_>>())
        }
    };
    let pass = parsed.expect.as_ref().map(|expect| *expect == next);
    let mut line = line(case);
    line.insert("next".to_owned(), next);
    Ok(finished(line, pass))
}

/// A moment, or a time of the schedule's own zone.
fn moment(text: &str, schedule: &Schedule) -> Result<Time, BadCase> {
    if let Ok(stamp) = text.parse::<Timestamp>() {
        return Ok(Time::from_millis(stamp.as_millisecond()));
    }
    let local = text.parse::<DateTime>().ok().and_then(|time| schedule.zone().to_timestamp(time).ok());
    local
        .map(|stamp| Time::from_millis(stamp.as_millisecond()))
        .ok_or_else(|| BadCase(format!("{text:?} is not a time")))
}

/// A moment in UTC, to the minute where that is all there is to say.
fn spelt(time: Time) -> String {
    let text = time.to_string();
    text.strip_suffix(":00.000Z").map_or_else(|| text.clone(), |minutes| format!("{minutes}Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(fields: Value) -> Value {
        let mut case = json!({"id": "c", "expr": "0 9 * * *", "after": "2026-01-30T10:15:30Z"});
        case.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        check(&case).unwrap()
    }

    #[test]
    fn c2_a_case_asks_for_one_time_or_as_many_as_it_expects() {
        assert_eq!(next(json!({})), json!({"id": "c", "next": ["2026-01-31T09:00Z"]}));
        assert_eq!(next(json!({"count": 2}))["next"], json!(["2026-01-31T09:00Z", "2026-02-01T09:00Z"]));
        let two = json!({"expect": ["2026-01-31T09:00:00Z", "2026-02-01T10:00+01:00"]});
        assert_eq!(next(two)["pass"], json!(true));
        assert_eq!(next(json!({"expect": ["2026-01-31T09:01Z"]}))["pass"], json!(false));
        assert_eq!(
            next(json!({"tz": "Europe/Berlin", "after": "2026-01-30T09:00"}))["next"],
            json!(["2026-01-31T08:00Z"])
        );
    }

    #[test]
    fn c1_what_is_invalid_or_never_comes_is_said() {
        assert_eq!(next(json!({"expr": "0 0 30 2 *", "expect": "never"}))["pass"], json!(true));
        assert_eq!(next(json!({"expr": "@reboot", "expect": "invalid"}))["pass"], json!(true));
        assert_eq!(next(json!({"tz": "Nowhere/Land"}))["next"], json!("invalid"));
        assert!(check(&json!({"expr": "* * * * *", "after": "soon"})).is_err());
    }
}
